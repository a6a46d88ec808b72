"""The syntax of filters: what is found, what is refused, and how a filter is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from portal.lists.filters import PilotFilter
from portal.lists.job_filter import JobFilter
from portal.lists.registry import LISTS, apply_filter, find_list
from tests import factories
from wms.core.errors import InvalidInput, NotFound
from wms.core.models import AuditEntry
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobState

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def dags(people: SimpleNamespace) -> dict[str, Dag]:
    """DAGs of several owners, submitted on several days; that of Carol is held."""
    made = {
        "alice": factories.dag(people.alice, name="higgs.dag", node_count=3),
        "bob": factories.dag(people.bob, name="top.dag", node_count=1),
        "charlie": factories.dag(people.charlie, name="higgs,top.dag", node_count=5),
    }
    hold_dags([made["charlie"].pk], actor=factories.SYSTEM, reason="look")
    for days, dag in enumerate(made.values()):
        Dag.objects.filter(pk=dag.pk).update(created_at=NOW - timedelta(days=days))
    return made


def found(user: object, query: str) -> set[str]:
    rows = apply_filter("dags", QueryDict(query), user, now=NOW)
    return {dag.owner.username for dag in rows}


#: Filters, and the owners of the DAGs that they find.
_FOUND: dict[str, set[str]] = {
    "": {"alice", "bob", "charlie"},
    "state=held": {"charlie"},
    "state=!held": {"alice", "bob"},
    "state=held,idle": {"alice", "bob", "charlie"},
    "state=held&state=idle&owner=!bob": {"alice", "charlie"},
    "owner=alice,bob": {"alice", "bob"},
    "owner=!alice&owner=!bob": {"charlie"},
    "owner=alice,!alice": set(),
    "owner=nobody": set(),
    "owner=!nobody": {"alice", "bob", "charlie"},
    "site=UW": set(),
    "site=!UW": {"alice", "bob", "charlie"},
    "name=HIGGS": {"alice", "charlie"},
    "name=higgs,top": {"charlie"},
    "name=higgs&name=op": {"alice", "bob", "charlie"},
    "name=!higgs": {"bob"},
    "nodes=3": {"alice"},
    "nodes=1,5": {"bob", "charlie"},
    "nodes=2..": {"alice", "charlie"},
    "nodes=..3": {"alice", "bob"},
    "nodes=2..4,5": {"alice", "charlie"},
    "nodes=!2..4": {"bob", "charlie"},
    "created=25h": {"alice", "bob"},
    "created=1h": {"alice"},
    "created=3d..25h": {"charlie"},
    "created=2026-11-19": {"bob"},
    "created=2026-11-18..2026-11-19": {"bob", "charlie"},
    "created=..2026-11-19T12:00": {"bob", "charlie"},
    "created=2026-11-19T13:00..": {"alice"},
    "created=2026-11-19T14:00%2B01:00..": {"alice"},
    "created=999999w": {"alice", "bob", "charlie"},
    "attention=true": {"charlie"},
    "attention=false": {"alice", "bob", "charlie"},
}


def test_a_filter_finds_what_it_says(people: SimpleNamespace, dags: dict[str, Dag]) -> None:
    Dag.objects.update(state_since=NOW)

    assert {query: found(people.vera, query) for query in _FOUND} == _FOUND


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("state=lost", "state", "Select a valid choice. lost is not one of"),
        ("state=!lost", "state", "Select a valid choice. lost is not one of"),
        ("nodes=seven", "nodes", "Enter a number."),
        ("nodes=9..5", "nodes", "ends before it begins"),
        ("nodes=..", "nodes", "Enter a number."),
        ("id=0", "id", "Give a number from 1 to"),
        ("id=99999999999999999999", "id", "Enter a number."),
        ("created=yesterday", "created", "Give a time such as"),
        ("created=2026-02-30", "created", "Give a time such as"),
        ("created=2026-11-20T10:00", "created", "From then on is 2026-11-20T10:00.."),
        ("created=0001-01-01T00:00%2B05:00..", "created", "Give a time such as"),
        ("created=!24h", "created", "without !"),
        ("created=1h&created=2h", "created", "Give one stretch of time"),
        ("created=2026-11-08..2026-11-01", "created", "ends before it begins"),
        ("created=1d..7d", "created", "ends before it begins"),
        ("state=!", "state", "Write behind ! what is not wanted."),
        ("owner=alice,!", "owner", "Write behind !"),
        ("name=!%20", "name", "Write behind !"),
        ("attention=maybe", "attention", "must be true or false"),
        ("name=a%00b", "name", "Null characters"),
        ("sort=colour", "sort", "cannot be sorted by 'colour'; there are -id, id, name, -name"),
        ("sort=id&sort=name", "sort", "Give one order."),
        ("name=" + "x" * 201, "name", "at most 200 characters"),
        ("owner=" + ",".join(f"u{n}" for n in range(101)), "owner", "at most 100 values"),
        ("colour=red", "colour", "is no filter of this list"),
    ],
)
def test_a_filter_that_does_not_parse_is_refused_at_its_field(
    people: SimpleNamespace, query: str, field: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        apply_filter("dags", QueryDict(query), people.vera)

    [finding] = refused.value.findings
    assert finding.field == field
    assert message in finding.message


def test_equal_questions_are_kept_as_the_same_value(db: None) -> None:
    dags = find_list("dags")

    first = dags.normalised(QueryDict("owner=bob&state=held,%20idle&name=&before=7&saved=3"))
    second = dags.normalised(QueryDict("state=held&state=idle&owner=bob&state=held"))

    assert first == second == {"state": ["held", "idle"], "owner": ["bob"]}
    assert dags.normalised(first) == first


def test_a_stored_filter_shows_nobody_more_than_they_may_see(
    people: SimpleNamespace, dags: dict[str, Dag]
) -> None:
    people.bob.is_active = False

    assert found(people.bob, "state=!held") == set()


def test_every_list_takes_an_empty_filter_and_every_filter_has_a_label(
    people: SimpleNamespace,
) -> None:
    for name, each in LISTS.items():
        # That somebody made these accounts is in the audit.
        assert {type(row) for row in apply_filter(name, {}, people.vera)} <= {AuditEntry}
        assert all(field.label for field in each.filter_class().form.fields.values()), name


def test_there_is_no_list_of_another_name(people: SimpleNamespace) -> None:
    with pytest.raises(NotFound, match="dags, jobs"):
        apply_filter("cats", {}, people.vera)


def test_jobs_are_found_by_the_site_of_their_latest_attempt(people: SimpleNamespace) -> None:
    site = factories.site()
    factories.running_dag(people.alice, node_count=2)
    pilot = factories.pilot(site.queues.get())
    ran = factories.run_job(pilot)
    assert ran is not None
    other = Job.objects.exclude(pk=ran.pk).get()

    at_site = apply_filter("jobs", {"site": [site.name]}, people.vera)
    elsewhere = apply_filter("jobs", {"site": [f"!{site.name}"]}, people.vera)

    assert [job.pk for job in at_site] == [ran.pk]
    assert [job.pk for job in elsewhere] == [other.pk]


def test_names_of_jobs_are_looked_for_in_the_latest_ones_and_that_is_said(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.lists.job_filter.SEARCHED_JOBS", 1)
    dag = factories.running_dag(people.alice, node_count=3)
    latest = Job.objects.order_by("-pk").first()
    assert latest is not None

    asked = find_list("jobs").filter_of(QueryDict("name=a"), people.vera)
    of_dag = find_list("jobs").filter_of(QueryDict(f"name=a&dag={dag.pk}"), people.vera)

    assert [job.pk for job in asked.qs] == [latest.pk]
    assert "latest 1 jobs" in asked.notes()[0]
    assert (of_dag.qs.count(), of_dag.notes()) == (3, [])


def test_jobs_are_found_by_their_reason_however_old_they_are(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.lists.job_filter.SEARCHED_JOBS", 1)
    factories.running_dag(people.alice, node_count=3)
    first, second, _ = Job.objects.order_by("pk")
    Job.objects.filter(pk=first.pk).update(state_reason="Disk full, on node 7")
    Job.objects.filter(pk=second.pk).update(state_reason="No heartbeat")

    def found(reason: str) -> set[int]:
        return {job.pk for job in apply_filter("jobs", {"reason": [reason]}, people.vera)}

    assert found("disk full, on") == {first.pk}
    assert len(found("!disk full")) == 2


def test_jobs_are_found_and_counted_by_how_their_latest_attempt_ended(
    people: SimpleNamespace, client: Client
) -> None:
    site = factories.site()
    factories.running_dag(people.alice, node_count=6)
    crashed, other, killed, mended, done, _ = Job.objects.order_by("pk")
    ends = {crashed: (3, None), other: (4, None), killed: (None, 9)}
    ends |= {mended: (3, None), done: (3, None)}
    for job, (exit_code, signal) in ends.items():
        Attempt.objects.create(
            job=job, number=1, pilot_id=1, site_name=site.name, outcome=Attempt.Outcome.FAILED,
            exit_code=exit_code, signal=signal,
        )  # fmt: skip
        Job.objects.filter(pk=job.pk).update(attempt_number=1, state=JobState.WAITING)
    Job.objects.filter(pk=mended.pk).update(attempt_number=2)
    Job.objects.filter(pk=done.pk).update(state=JobState.DONE)

    def found(**values: list[str]) -> set[int]:
        return {job.pk for job in apply_filter("jobs", values, people.vera)}

    client.force_login(people.vera)
    groups = client.get(reverse("web:jobs")).context["listing"].groups
    counts = {group.name: [(each.state, each.count) for each in group.facets] for group in groups}

    assert found(exit=["3"]) == {crashed.pk}
    assert found(exit=["1..9"]) == {crashed.pk, other.pk}
    assert found(signal=["9"]) == {killed.pk}
    assert killed.pk in found(exit=["!3"])
    assert counts["exit"] == [("3", 1), ("4", 1)]


def test_an_unbound_filter_leaves_every_row(people: SimpleNamespace) -> None:
    factories.running_dag(people.alice, node_count=2)

    assert JobFilter(queryset=Job.objects.all()).qs.count() == 2
    assert PilotFilter().unknown() == []
