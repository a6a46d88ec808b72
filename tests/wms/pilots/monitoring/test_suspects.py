"""Suspected worker nodes: found out, spared, tried, and cleared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from tests import factories
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, InboxEntry, User
from wms.dags.engine import cycle as engine
from wms.dags.models import Node
from wms.failures import grouping
from wms.failures.models import FailureGroup
from wms.jobs.models import Attempt, Job
from wms.jobs.operations import create_workspace, hold_jobs, submission
from wms.jobs.specs import JobSpec
from wms.pilots.models import Pilot
from wms.pilots.monitoring import suspects
from wms.pilots.pressure.snapshot import pilots_by_entry
from wms.pilots.protocol.claims import claim_job
from wms.pilots.suspect_models import SuspectedNode
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.selectors import offered_resource

pytestmark = pytest.mark.django_db

GOOD = ("wn2", "wn3", "wn4", "wn5", "wn6")
LATER = timedelta(seconds=61)


@pytest.fixture
def site(db: None) -> Site:
    return factories.site("UW")


@pytest.fixture
def on(site: Site) -> Callable[[str], Pilot]:
    """A pilot on a worker node of the site."""
    return lambda host: factories.pilot(site.queues.get(), host=host)


@pytest.fixture
def jobs(alice: User) -> Callable[..., list[int]]:
    """Jobs of one DAG, which need not be there."""

    def make(count: int, *, of: int = 1, max_retries: int = 0) -> list[int]:
        needs = Needs.of("alice")
        with submission(
            owner=alice, workspace=create_workspace(alice, {}), actor=factories.SYSTEM,
            topic="test", topic_key=of,
        ) as add:  # fmt: skip
            return [
                pk
                for number in range(count)
                for pk in add([JobSpec(f"n{number}", "/bin/true", needs, max_retries=max_retries)])
            ]

    return make


def run(pilot: Pilot, exit_code: int, count: int = 1) -> None:
    for _ in range(count):
        claimed = factories.claim(pilot)
        assert claimed is not None
        claimed.start().end(exit_code)


def ask(pilot: Pilot, now: datetime, key: str) -> str:
    """What a pilot is told; empty when it is given a job."""
    Pilot.objects.filter(pk=pilot.pk).update(fruitless_at=None)
    answer = claim_job(pilot, offered_resource(pilot.queue), claim_key=key * 32, now=now)
    return answer.reason


@pytest.fixture
def suspected(on, jobs) -> SuspectedNode:
    """A node on which eight payloads failed, while two did well on each other one."""
    jobs(18)
    run(on("wn1"), 1, 8)
    for host in GOOD:
        run(on(host), 0, 2)
    suspects.run_cycle(timezone.now())
    return SuspectedNode.objects.get()


def test_a_node_is_suspected_with_its_figures_and_an_event_of_its_site(suspected) -> None:
    event = SiteEvent.objects.get(event="suspect")

    assert (suspected.host, suspected.failed, suspected.tried) == ("wn1", 8, 8)
    assert (suspected.others_failed, suspected.others_tried) == (0, 10)
    assert "exit code 1" in suspected.reason
    assert len(suspected.failed_jobs) == 8
    assert set(suspected.failed_jobs) <= set(
        Job.objects.filter(state="failed").values_list("pk", flat=True)
    )
    assert "wn1: 8 of 8" in event.reason
    assert "UW 0 of 10" in event.reason
    assert InboxEntry.objects.filter(topic="site-news", subject_id=event.pk).exists()


def test_a_node_is_found_out_while_the_long_payloads_of_the_others_go_on(on, jobs) -> None:
    jobs(18)
    run(on("wn1"), 1, 8)
    for host in GOOD * 2:
        claimed = factories.claim(on(host))
        assert claimed is not None
        claimed.start()

    suspects.run_cycle(timezone.now())
    at_once = list(SuspectedNode.objects.all())
    suspects.run_cycle(timezone.now() + LATER)

    assert at_once == []
    assert [row.host for row in SuspectedNode.objects.all()] == ["wn1"]


@pytest.mark.slow
def test_a_payload_that_fails_everywhere_makes_no_node_suspected(on, jobs) -> None:
    jobs(60, max_retries=2)
    pilots = [on(host) for host in ("wn1", *GOOD)]
    for turn in range(240):
        if (claimed := factories.claim(pilots[turn % 6])) is not None:
            claimed.start().end(1)

    suspects.run_cycle(timezone.now())

    assert Attempt.objects.filter(outcome="failed").count() == 180
    assert not SuspectedNode.objects.exists()


@pytest.mark.slow
def test_failures_of_one_dag_that_ran_nowhere_else_make_no_node_suspected(on, jobs) -> None:
    jobs(20, of=1)
    run(on("wn1"), 1, 20)
    jobs(20, of=2)
    run(on("wn2"), 0, 20)

    suspects.run_cycle(timezone.now())

    assert not SuspectedNode.objects.exists()


def test_what_a_person_stopped_says_nothing_of_a_node(on, jobs) -> None:
    jobs(18)
    for _ in range(8):
        claimed = factories.claim(on("wn1"))
        assert claimed is not None
        hold_jobs([claimed.start().job.pk], actor=factories.SYSTEM, reason="wait")
    for host in GOOD:
        run(on(host), 0, 2)

    suspects.run_cycle(timezone.now())

    assert not SuspectedNode.objects.exists()


def test_pilots_of_a_suspected_node_get_one_job_in_five_minutes(suspected, on, jobs) -> None:
    jobs(3, of=2)
    first, second = on("wn1"), on("wn1")
    now = suspected.since

    refused = ask(first, now + timedelta(minutes=4), "a")
    given = ask(first, now + timedelta(minutes=5), "b")
    again = ask(second, now + timedelta(minutes=6), "c")
    other = ask(on("wn2"), now, "d")

    assert "wn1" in refused
    assert "8 of 8" in refused
    assert (given, other) == ("", "")
    assert "is suspected" in again
    suspected.refresh_from_db()
    assert suspected.trials == [Attempt.objects.filter(host="wn1").latest("pk").pk]


def test_a_suspected_node_gets_no_job_that_has_failed_elsewhere(suspected, on, jobs) -> None:
    jobs(1, of=2, max_retries=3)
    run(on("wn2"), 1)
    pilot, due = on("wn1"), suspected.since + timedelta(minutes=5)

    reason = ask(pilot, due, "a")

    assert "fits" in reason
    assert ask(on("wn3"), due, "b") == ""


def test_what_a_suspected_node_has_free_counts_for_no_waiting_job(suspected, on) -> None:
    queue = Queue.objects.get()
    on("wn1")
    on("wn2")

    [pilots] = pilots_by_entry(timezone.now(), times_s=[500]).values()

    assert pilots.running == Pilot.objects.filter(queue=queue).count()
    assert pilots.free.total() == Pilot.objects.exclude(node__hostname="wn1").count()


def tried(row: SuspectedNode, on, jobs, *codes: int) -> Iterator[datetime]:
    """Trials with these exit codes, five minutes apart; the times after them."""
    now = row.since
    for number, code in enumerate(codes):
        jobs(1, of=100 + number)
        now += suspects.TRIAL_PAUSE
        pilot = on("wn1")
        assert ask(pilot, now, "e") == ""
        attempt = Attempt.objects.latest("pk")
        claimed = factories.Claimed(attempt.job, attempt.number, pilot)
        claimed.start().end(code)
        yield now


@pytest.mark.slow
def test_three_trials_in_a_row_that_did_well_clear_a_node(suspected, on, jobs) -> None:
    ended = []
    for now in tried(suspected, on, jobs, 0, 0, 1, 0, 0, 0):
        ended.append(suspects.run_cycle(now)["ended"])

    suspected.refresh_from_db()
    assert ended == [0, 0, 0, 0, 0, 1]
    assert "3 trials" in suspected.end_reason
    assert SiteEvent.objects.filter(event="clear").count() == 1
    assert suspects.run_cycle(timezone.now())["suspected"] == 0, "what it was cleared of"


def test_a_node_is_cleared_after_an_hour_in_which_nothing_failed_there(suspected) -> None:
    assert suspects.run_cycle(suspected.since + timedelta(minutes=59))["ended"] == 0
    assert suspects.run_cycle(suspected.since + timedelta(minutes=60))["ended"] == 1

    suspected.refresh_from_db()
    assert "60 min" in suspected.end_reason


def test_a_shifter_clears_a_node_with_a_reason_and_an_audit_entry(suspected, sam) -> None:
    actor, now = Actor.person(sam), timezone.now()
    with pytest.raises(ReasonRequired):
        suspects.clear_node(suspected.pk, actor=actor, reason="  ", now=now)

    row = suspects.clear_node(suspected.pk, actor=actor, reason="new disk", now=now)

    assert (row.ended_by, row.end_reason) == ("sam", "new disk")
    entry = AuditEntry.objects.get(action="clear suspected worker node")
    assert (entry.target, entry.reason, entry.facts) == ("site UW", "new disk", {"host": "wn1"})
    assert suspects.run_cycle(timezone.now())["suspected"] == 0
    with pytest.raises(Conflict, match="by sam already"):
        suspects.clear_node(suspected.pk, actor=actor, reason="again", now=now)
    with pytest.raises(NotFound):
        suspects.clear_node(0, actor=actor, reason="again", now=now)


def test_a_user_clears_no_node(suspected, alice) -> None:
    with pytest.raises(NotPermitted):
        suspects.clear_node(
            suspected.pk, actor=Actor.person(alice), reason="new disk", now=timezone.now()
        )


def test_what_fails_on_a_suspected_node_is_a_group_of_its_own_for_the_site(
    suspected, on, jobs
) -> None:
    for _ in tried(suspected, on, jobs, 1):
        grouping.run_cycle(timezone.now())

    groups = FailureGroup.objects.all()
    assert {(each.category, each.total) for each in groups} == {("payload", 8), ("site", 1)}
    assert all("exit code 1" in each.text for each in groups)


def test_a_job_that_failed_on_the_only_node_of_a_site_is_given_to_it_again(on, jobs) -> None:
    [job_id] = jobs(1, max_retries=1)
    pilot = on("wn1")
    run(pilot, 1)

    run(pilot, 0)

    assert Job.objects.get(pk=job_id).state == "done"


def test_a_pilot_is_told_that_jobs_which_failed_on_its_node_are_left_to_others(on, jobs) -> None:
    jobs(1, max_retries=1)
    here, there = on("wn1"), on("wn2")
    run(here, 1)

    assert "failed on wn1" in ask(here, timezone.now(), "a")
    assert ask(there, timezone.now(), "b") == ""


@pytest.mark.slow
def test_one_bad_node_of_six_fails_no_node_of_a_dag(site: Site, on, alice: User) -> None:
    """The bad one takes twenty jobs while each of the others does one."""
    dag = factories.running_dag(alice, node_count=60, commands="RETRY ALL_NODES 3\n")
    bad, good = on("wn1"), [on(host) for host in GOOD]

    for turn in range(60):
        now = timezone.now() + turn * timedelta(seconds=10)
        for _ in range(20):
            if (claimed := claim_at(bad, now)) is not None:
                claimed.start().end(1)
        for pilot in good:
            if (claimed := claim_at(pilot, now)) is not None:
                claimed.start().end(0)
        suspects.run_cycle(now)
        engine.run_cycle(now)
        dag.refresh_from_db()
        if dag.state != "running":
            break

    assert dag.state == "completed", dag.state_reason
    assert set(Node.objects.filter(dag=dag).values_list("state", flat=True)) == {"done"}
    assert SuspectedNode.objects.get().host == "wn1"
    # Each payload fails there once at the most, and few do once it is found out.
    assert Attempt.objects.filter(outcome="failed").count() <= 40


def claim_at(pilot: Pilot, now: datetime) -> factories.Claimed | None:
    Pilot.objects.filter(pk=pilot.pk).update(fruitless_at=None)
    key = f"{pilot.pk}-{Attempt.objects.count()}"
    work = claim_job(pilot, offered_resource(pilot.queue), claim_key=key, now=now).work
    return None if work is None else factories.Claimed(work.job, work.attempt.number, pilot)
