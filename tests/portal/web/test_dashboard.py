"""Dashboard: attention items, counts that match their lists, own work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.shared.site_lines import site_lines
from portal.shared.site_strip import strip_lines
from tests import factories
from tests.query_counts import statements_of
from wms.core.actors import Actor
from wms.core.models import ControlLoop, User
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags
from wms.failures import grouping
from wms.failures.models import Failure, FailureGroup
from wms.failures.services import mute_groups
from wms.jobs.operations import hold_jobs
from wms.pilots.models import PilotCheck
from wms.pilots.pressure.backoff import note_failure
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import ElementContact, PressureRequest
from wms.sites.downtimes.services import add_downtime
from wms.sites.models import Queue

DASHBOARD = "/"


@pytest.fixture
def people(db: None) -> Any:
    return factories.people()


def as_user(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def board(user: User, **query: str) -> Any:
    answer = as_user(user).get(DASHBOARD, query)
    assert answer.status_code == 200
    return answer.context["board"]


def wants(user: User, **query: str) -> Mapping[str, Any]:
    """What needs somebody, by the mark of its link."""
    return {item.mark: item for item in board(user, **query).attention_items}


def fail(owner: User, *, count: int = 1, exit_code: int = 1) -> None:
    worker = factories.pilot()
    for _ in range(count):
        factories.job(owner)
        assert factories.run_job(worker, exit_code=exit_code) is not None
    grouping.run_cycle(timezone.now())


@pytest.mark.slow
def test_every_figure_is_the_count_of_the_list_behind_it(people: Any) -> None:
    held, _ = factories.dag(people.alice), factories.dag(people.bob)
    hold_dags([held.pk], actor=Actor.person(people.alice), reason="wait")
    factories.job(people.alice)
    factories.queued_pilot()
    factories.turn()

    for user, scope in ((people.sam, "all"), (people.alice, "mine")):
        client, shown = as_user(user), board(user, show=scope)
        tiles = (
            ("web:dags", shown.dag_tiles), ("web:jobs", shown.job_tiles),
            ("web:pilots", shown.pilot_tiles),
        )  # fmt: skip
        for name, entries in tiles:
            for tile in entries:
                listing = client.get(reverse(name) + tile.query).context["listing"]
                assert listing.chosen_total == tile.count, (name, tile)
                assert len(listing.page.rows) == tile.count.value


@pytest.mark.slow
def test_a_dag_that_is_held_failing_or_without_a_site_tells_why(people: Any) -> None:
    held, idle = factories.dag(people.alice), factories.dag(people.alice)
    hold_dags([held.pk], actor=Actor.person(people.alice), reason="disk full")
    failing = factories.running_dag(people.alice, node_count=2)
    Dag.objects.filter(pk=failing.pk).update(failed_count=1, futile_count=1)
    long_ago = timezone.now() - timedelta(hours=1)
    Dag.objects.filter(pk=idle.pk).update(
        state="idle", site=None, state_since=long_ago, unmatched_reason="no GPUs"
    )

    found = wants(people.sam)

    assert found[f"needy-{held.pk}"].why == "disk full"
    assert found[f"needy-{idle.pk}"].why == "no GPUs"
    assert found[f"needy-{idle.pk}"].act_address == f"{reverse('web:explain')}?dag={idle.pk}"
    assert re.findall(r"\d+", found[f"needy-{failing.pk}"].why) == ["1", "1"]


def test_held_jobs_are_one_line_with_their_number_and_a_reason(people: Any) -> None:
    jobs = [factories.job(people.alice).pk for _ in range(3)]
    hold_jobs(jobs, actor=factories.SYSTEM, reason="input is gone")

    item = wants(people.sam)["needy-held-jobs"]

    assert item.name == "3 held"
    assert item.why.endswith("input is gone")
    listing = as_user(people.sam).get(item.address).context["listing"]
    assert listing.chosen_total.value == 3


@pytest.mark.slow
def test_what_is_wrong_with_sites_and_queues_is_told_to_who_looks_after_them(people: Any) -> None:
    now = timezone.now()
    site = factories.site(queues=["short", "long"])
    short, long_ = site.queues.order_by("-name")
    worker = factories.pilot(short)
    note_failure(long_, ElementContact.Kind.POLL, "no route to host", now=now, jitter=0)
    for number in range(2):
        PilotCheck.objects.create(
            pilot=worker, key=f"disk{number}", name="disk", is_ok=False, reason="3 GB free",
            seconds=1.0,
        )  # fmt: skip
    found = {item.thing + " " + item.name: item for item in board(people.sam).attention_items}

    assert found["Queue long of UW"].why.endswith("no route to host")
    assert found["Check disk at UW"].why.endswith("3 GB free")
    assert found["Site UW"].state == "late"
    assert not board(people.alice, show="mine").attention_items


def test_a_planned_downtime_is_told_with_its_site_and_alarms_nobody(people: Any) -> None:
    now = timezone.now()
    for name, hours in (("CERN", 13), ("UW", 1)):
        factories.site(name)
        add_downtime(
            name, start=now + timedelta(hours=hours), end=now + timedelta(hours=20),
            reason="new disks", actor=factories.SYSTEM, now=now,
        )  # fmt: skip

    shown = board(people.sam)

    near = {line.name: line.standing.near_downtime for line in shown.first_sites}
    assert near["CERN"] is None
    assert near["UW"].reason == "new disks"
    assert {item.state for item in shown.attention_items} <= {"late"}


def test_of_dags_that_fail_alike_the_one_that_failed_first_comes_first(people: Any) -> None:
    late, early = (factories.running_dag(people.bob, node_count=3) for _ in range(2))
    Dag.objects.filter(pk=late.pk).update(failed_count=2)
    Dag.objects.filter(pk=early.pk).update(failed_count=1, futile_count=1)
    now = timezone.now()
    group = FailureGroup.objects.create(
        fingerprint="f", kind="job", text="x", sample="x", first_seen=now, last_seen=now
    )
    for number, (dag, minutes) in enumerate(((late, 5), (early, 50), (early, 2))):
        Failure.objects.create(
            group=group, kind="job", event_id=number, subject_id=number, dag_id=dag.pk,
            at=now - timedelta(minutes=minutes), rules_version=1,
        )  # fmt: skip

    items = [each for each in board(people.sam).attention_items if each.thing == "DAG"]
    page = Client()
    page.force_login(people.sam)

    assert [(each.mark, each.failed_at) for each in items] == [
        (f"needy-{early.pk}", now - timedelta(minutes=50)),
        (f"needy-{late.pk}", now - timedelta(minutes=5)),
    ]
    assert 'id="first-failure"' in page.get(f"/dags/{early.pk}/").content.decode()


@pytest.mark.slow
def test_the_worst_dags_come_first_and_those_that_say_the_same_are_one_line(people: Any) -> None:
    held = [factories.dag(people.alice).pk for _ in range(9)]
    hold_dags(held, actor=Actor.person(people.alice), reason="disk full")
    little, much = (factories.running_dag(people.bob, node_count=3) for _ in range(2))
    Dag.objects.filter(pk=little.pk).update(failed_count=1)
    Dag.objects.filter(pk=much.pk).update(failed_count=1, futile_count=2)

    shown = board(people.sam)
    dags = [item for item in shown.attention_items if item.thing == "DAG"]

    assert [item.mark for item in dags[:2]] == [f"needy-{much.pk}", f"needy-{little.pk}"]
    assert [(item.name, item.why, item.state) for item in dags[2:]] == [
        ("9 DAGs", "disk full", "held")
    ]
    listing = as_user(people.sam).get(dags[2].address).context["listing"]
    assert listing.chosen_total.value == 9


@pytest.mark.slow
def test_many_dags_in_trouble_do_not_hide_a_site_that_is(people: Any) -> None:
    for number in range(12):
        dag = factories.dag(people.alice)
        hold_dags([dag.pk], actor=factories.SYSTEM, reason=f"reason {number}")
    factories.site("CERN")

    shown = board(people.sam)

    things = [item.thing for item in shown.first_items]
    assert things == ["DAG"] * 7 + ["Site"]
    assert len(shown.first_items) + len(shown.further_items) == len(shown.attention_items) == 13


@pytest.mark.slow
def test_a_site_in_demand_without_pilots_is_told_until_it_has_one(people: Any) -> None:
    now = timezone.now()
    queue = factories.site().queues.get()
    plan_requests(now)
    PressureRequest.objects.filter(queue=queue).update(
        waiting_jobs=7, lease_until=now + timedelta(hours=1), turn_reasons=["submission failed"]
    )
    mark = f"needy-demand-{queue.site.name}-{queue.name}"

    item = wants(people.sam)[mark]
    factories.queued_pilot(Queue.objects.get(pk=queue.pk))

    assert item.why.startswith("7 jobs")
    assert "submission failed" in item.why
    assert mark not in wants(people.sam)


@pytest.mark.slow
def test_a_site_without_pilots_is_told_however_many_have_some(people: Any) -> None:
    now = timezone.now()
    names = [f"busy{number}" for number in range(7)]
    queues = [factories.site(name).queues.get() for name in (*names, "starving")]
    plan_requests(now)
    for queue in queues[:-1]:
        factories.queued_pilot(queue)
    PressureRequest.objects.update(waiting_jobs=900, lease_until=now + timedelta(hours=1))
    PressureRequest.objects.filter(queue=queues[-1]).update(waiting_jobs=1)

    told = [mark for mark in wants(people.sam) if mark.startswith("needy-demand-")]

    assert told == ["needy-demand-starving-short"]


@pytest.mark.slow
def test_the_failed_nodes_of_a_failing_dag_are_what_its_link_shows(people: Any) -> None:
    dag = factories.running_dag(people.alice, node_count=3)
    factories.run_job(factories.pilot(), exit_code=3)
    factories.turn()

    item = wants(people.sam)[f"needy-{dag.pk}"]
    nodes = as_user(people.sam).get(item.act_address).context["nodes"].rows

    assert item.why.startswith("1 node ")
    assert [node.state for node in nodes] == ["failed"]


@pytest.mark.slow
def test_all_dags_that_need_somebody_are_those_of_the_list(
    people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.dashboard.board._NEEDY", 8)
    held = [factories.dag(people.alice, node_count=1).pk for _ in range(9)]
    hold_dags(held, actor=factories.SYSTEM, reason="wait")

    shown = board(people.sam)
    listing = as_user(people.sam).get(reverse("web:dags") + "?attention=true").context["listing"]

    assert shown.attention_total == listing.chosen_total
    assert shown.attention_total.value == len(held) > len(shown.attention)


def test_loops_that_fail_or_do_not_run_come_first(people: Any) -> None:
    hold_dags([factories.dag(people.alice).pk], actor=factories.SYSTEM, reason="wait")
    now = timezone.now()
    ControlLoop.objects.create(name="negotiator", period_s=5, started_at=now, error="KeyError: 'x'")

    first = board(people.sam).attention_items[0]

    assert (first.name, first.why) == ("negotiator", "KeyError: 'x'")


@pytest.mark.slow
def test_a_user_sees_their_own_work_first_and_a_shifter_everything(people: Any) -> None:
    mine, other = factories.dag(people.alice), factories.dag(people.bob)
    hold_dags([mine.pk, other.pk], actor=factories.SYSTEM, reason="wait")

    own, whole = board(people.alice), board(people.sam)

    assert [dag.pk for dag in own.attention] == [mine.pk]
    assert {dag.pk for dag in whole.attention} == {mine.pk, other.pk}
    assert {dag.pk for dag in board(people.alice, show="all").attention} == {mine.pk, other.pk}


@pytest.mark.parametrize("query", [{"show": "his"}, {"within": "3y"}])
def test_what_cannot_be_shown_is_refused_with_what_can(people: Any, query: dict[str, str]) -> None:
    answer = as_user(people.sam).get(DASHBOARD, query)

    assert answer.status_code == 400
    assert "must be" in answer.content.decode()


@pytest.mark.slow
def test_the_count_of_a_cause_is_the_number_of_failures_behind_its_link(people: Any) -> None:
    fail(people.alice, count=3, exit_code=1)
    fail(people.bob, count=2, exit_code=1)
    fail(people.bob, count=1, exit_code=2)

    for user, expected in ((people.sam, [5, 1]), (people.alice, [3])):
        client, shown = as_user(user), board(user)
        assert [hit.count for hit in shown.causes] == expected
        for hit in shown.causes:
            address = reverse("web:error", args=[hit.group.pk])
            page = client.get(f"{address}?within={shown.window.value}{shown.of_owner}")
            assert page.context["chosen"] == len(page.context["lines"]) == hit.count


def test_a_muted_cause_is_not_brought_up(people: Any) -> None:
    fail(people.alice)
    mute_groups([FailureGroup.objects.get().pk], actor=Actor.person(people.sam), reason="known")

    assert not board(people.sam).causes


@pytest.mark.slow
def test_the_board_asks_at_most_fifteen_times_whatever_there_is(people: Any) -> None:
    fail(people.alice, count=2)
    hold_dags([factories.dag(people.alice).pk], actor=factories.SYSTEM, reason="wait")
    for user in (people.sam, people.alice):
        client = as_user(user)
        client.get(DASHBOARD)

        assert len(statements_of(lambda client=client: client.get(DASHBOARD))) <= 15


def test_the_strip_of_sites_shows_what_their_list_shows(people: Any) -> None:
    factories.running_dag(people.alice)
    site = factories.site("CERN", queues=["short", "long"])
    for queue in site.queues.all():
        factories.pilot(queue)
        factories.queued_pilot(queue)
    now = timezone.now()

    strip, listed = strip_lines(people.sam, now=now), site_lines(people.sam, now=now)

    assert strip == listed
    assert [line.running_pilots + line.queued_pilots for line in strip] == [4, 0]


def test_gates_that_wait_for_somebody_are_told_with_buttons_on_the_overview_and_on_their_dag(
    people: Any,
) -> None:
    dag = factories.deciding_dag(people.alice)
    gate = dag.nodes.get(name="g")
    way = reverse("web:steer-nodes", args=[dag.pk, "open-gate"]) + f"?node={gate.pk}"
    overview, page = reverse("web:dashboard"), reverse("web:dag", args=[dag.pk])

    for user, is_asked in ((people.alice, True), (people.sam, True), (people.bob, False)):
        client = as_user(user)
        shown = client.get(overview).content.decode()
        assert (way in shown, "Waits for your yes" in shown) == (is_asked, is_asked)
        assert (way in client.get(page).content.decode()) == is_asked
    told = as_user(people.sam).get(overview, {"show": "mine"}).content.decode()
    assert "Waits for your yes" not in told

    alice = as_user(people.alice)
    [seen] = re.findall(r'name="seen" value="(\w+)"', alice.get(way).content.decode())
    sent = {"nodes": "g", "reason": "it looks well", "seen": seen}
    alice.post(reverse("web:steer-nodes", args=[dag.pk, "open-gate"]), sent)

    gate.refresh_from_db()
    assert gate.state == "done"
    assert "Waits for your yes" not in alice.get(overview).content.decode()
