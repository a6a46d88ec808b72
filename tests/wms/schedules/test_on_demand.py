"""Schedules whose DAG is submitted on demand, and labels and priority of the DAGs to come."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.wms.bulk.conftest import finish
from tests.wms.bulk.conftest import outcomes as outcomes_of
from tests.wms.schedules.test_schedules import MONDAY, make, outcomes
from wms.accounting.models import Quota
from wms.bulk.models import BulkOperation
from wms.bulk.services import Confirmation, Selection, confirm, freeze
from wms.core.actors import Actor
from wms.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    ReasonRequired,
)
from wms.core.models import AuditEntry, Role, User
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags
from wms.schedules import submitting
from wms.schedules.changes import prioritise_schedules, relabel_schedules
from wms.schedules.models import Schedule
from wms.schedules.on_demand import run_schedules
from wms.schedules.selectors import listed_schedules
from wms.schedules.services import pause_schedules, remove_schedules

WHY = {"actor": Actor.system("test"), "reason": "try it"}


def test_a_dag_is_submitted_at_once_and_the_times_stay(alice: User, sam: User) -> None:
    schedule = make(alice, submission={"labels": ("night",)})

    dags = run_schedules([schedule.pk], actor=Actor.person(sam), reason="try it")

    dag, run = Dag.objects.get(), schedule.runs.get()
    schedule.refresh_from_db()
    assert dags == {schedule.pk: dag}
    assert (dag.owner, dag.labels, schedule.next_at) == (alice, ["night"], MONDAY)
    assert (run.dag, run.outcome, run.asked_by) == (dag, "submitted", "sam")
    [event] = schedule.events.all()
    assert (event.event, event.actor) == ("run", "sam")
    assert event.facts == {"reason": "try it", "dag": dag.pk}
    entry = AuditEntry.objects.get(action="run schedule")
    assert (entry.actor, entry.target, entry.reason) == ("sam", f"schedule {schedule.pk}", "try it")


def test_it_does_not_overlap_unless_that_is_allowed(alice: User) -> None:
    careful, careless = make(alice), make(alice, name="careless", allows_overlap=True)
    first = run_schedules([careful.pk, careless.pk], **WHY)

    with pytest.raises(Conflict):
        run_schedules([careful.pk], **WHY)
    run_schedules([careless.pk], **WHY)
    submitting.run_cycle(MONDAY)

    assert outcomes(careful)[-1] == (MONDAY, "overlap")
    assert [outcome for _, outcome in outcomes(careless)] == ["submitted"] * 3
    remove_dags([first[careful.pk].pk], **WHY)
    run_schedules([careful.pk], **WHY)
    assert careful.runs.filter(outcome="submitted").count() == 2


def test_a_paused_schedule_is_run_and_a_removed_one_is_not(alice: User) -> None:
    paused, removed = make(alice), make(alice, name="old")
    pause_schedules([paused.pk], **WHY)
    remove_schedules([removed.pk], **WHY)

    run_schedules([paused.pk], **WHY)

    with pytest.raises(Conflict):
        run_schedules([removed.pk], **WHY)
    paused.refresh_from_db()
    assert (paused.state, paused.next_at) == ("paused", None)


def test_what_is_refused_leaves_nothing(alice: User, charlie: User) -> None:
    schedule = make(alice)
    Quota.objects.create(user=alice, max_clusters=0)

    for error, asked in (
        (NotFound, {"ids": [4711], **WHY}),
        (NotPermitted, {"ids": [schedule.pk], **WHY, "actor": Actor.person(charlie)}),
        (ReasonRequired, {"ids": [schedule.pk], **WHY, "reason": " "}),
        (QuotaExceeded, {"ids": [schedule.pk], **WHY}),
    ):
        with pytest.raises(error):
            run_schedules(**asked)

    assert not Dag.objects.exists()
    assert not schedule.runs.exists()
    assert not schedule.events.exists()


def test_an_owner_who_may_not_submit_any_more_gets_no_dag(alice: User) -> None:
    schedule = make(alice)
    User.objects.filter(pk=alice.pk).update(role=Role.VIEWER)

    with pytest.raises(NotPermitted):
        run_schedules([schedule.pk], **WHY)

    assert not Dag.objects.exists()


def test_labels_and_priority_are_those_of_the_dags_to_come(alice: User) -> None:
    schedule = make(alice, submission={"labels": ("night", "old")})
    same, removed = make(alice, name="same"), make(alice, name="gone")
    prioritise_schedules([same.pk], priority=3, **WHY)
    remove_schedules([removed.pk], **WHY)
    ids = [schedule.pk, same.pk, removed.pk]

    labelled = relabel_schedules(ids, add=["campaign=mc27"], remove=["old"], **WHY)
    prioritised = prioritise_schedules(ids, priority=3, **WHY)
    dag = run_schedules([schedule.pk], **WHY)[schedule.pk]

    assert labelled.changed == prioritised.changed == ids[:2]
    assert (dag.labels, dag.priority) == (["night", "campaign=mc27"], 3)
    told = [event.facts for event in schedule.events.filter(event="change").order_by("pk")]
    assert told == [
        {"reason": "try it", "labels": [["night", "old"], ["night", "campaign=mc27"]]},
        {"reason": "try it", "priority": [None, 3]},
    ]
    # Of a value that it has already no event tells.
    assert same.events.filter(event="change").count() == 2
    assert AuditEntry.objects.filter(action="label schedule").count() == 2


@pytest.mark.parametrize(
    ("change", "given", "field"),
    [
        (relabel_schedules, {}, "add"),
        (relabel_schedules, {"add": ["a b"]}, "add"),
        (relabel_schedules, {"add": ["a"], "remove": ["a"]}, "remove"),
        (prioritise_schedules, {"priority": 11}, "priority"),
    ],
)
def test_faulty_labels_and_priorities_change_nothing(
    alice: User, change: Any, given: dict[str, Any], field: str
) -> None:
    schedule = make(alice)

    with pytest.raises(InvalidInput) as raised:
        change([schedule.pk], **given, **WHY)
    with pytest.raises(ReasonRequired):
        change([schedule.pk], **given, actor=WHY["actor"], reason=" ")

    assert [each.field for each in raised.value.findings] == [field]
    assert not schedule.events.exists()


def test_many_are_paused_in_bulk_as_far_as_one_may(alice: User) -> None:
    bob = factories.person("bob")
    own, paused, foreign = make(alice), make(alice, name="paused"), make(bob)
    pause_schedules([paused.pk], **WHY)

    done = _in_bulk("pause", alice)

    assert (done.frozen_count, done.done_count, done.skipped_count) == (3, 1, 2)
    states = dict(Schedule.objects.values_list("pk", "state"))
    assert states == {own.pk: "paused", paused.pk: "paused", foreign.pk: "active"}
    [event] = own.events.all()
    assert (event.facts["operation"], event.reason) == (done.pk, "the disk is full")


def test_many_are_run_in_bulk_each_by_itself(alice: User) -> None:
    free, busy = make(alice), make(alice, name="busy")
    run_schedules([busy.pk], **WHY)

    done = _in_bulk("run", alice)

    assert done.frozen_count == 2
    told = outcomes_of(done)
    assert told[free.pk] == ("done", f"submitted as DAG {free.runs.get().dag_id}")
    assert told[busy.pk][0] == "skipped"
    assert Dag.objects.count() == 2


def _in_bulk(action: str, user: User) -> BulkOperation:
    actor = Actor.person(user)
    made = freeze(Selection("schedules", listed_schedules(user)), action=action, actor=actor)
    asked = Confirmation(typed=made.frozen_count, reason="the disk is full")
    return finish(confirm(made.pk, asked, actor=actor))
