"""Changes of schedules: what follows from them, what is refused, and what is told of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.wms.schedules.test_schedules import MONDAY, make, outcomes
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.schedules import submitting
from wms.schedules.changes import change_schedule
from wms.schedules.services import pause_schedules, remove_schedules

WHY = {"actor": Actor.system("test"), "reason": "the beam is off on Mondays"}


def test_a_change_of_times_gives_the_next_one_and_is_told_and_audited(alice: User) -> None:
    schedule = make(alice)

    change_schedule(
        schedule.pk, cron="30  7 * * tue", kept_runs=5, name="weekly", actor=Actor.person(alice),
        reason="the beam is off on Mondays",
    )  # fmt: skip

    schedule.refresh_from_db()
    assert (schedule.cron, schedule.kept_runs, schedule.name) == ("30 7 * * tue", 5, "weekly")
    assert schedule.next_at is not None
    assert (schedule.next_at.weekday(), schedule.next_at.hour, schedule.next_at.minute) == (
        1,
        7,
        30,
    )
    changed = {"cron": ["0 6 * * mon", "30 7 * * tue"], "kept_runs": [100, 5]}
    [event] = schedule.events.all()
    assert (event.event, event.actor, event.to_state) == ("change", "alice", "active")
    assert event.facts == {"reason": "the beam is off on Mondays", **changed}
    entry = AuditEntry.objects.get(action="change schedule")
    assert (entry.target, entry.reason) == (f"schedule {schedule.pk}", WHY["reason"])
    assert entry.facts == changed


def test_a_change_of_anything_else_leaves_the_next_time(alice: User) -> None:
    schedule = make(alice)

    change_schedule(schedule.pk, grace_s=60, allows_overlap=True, **WHY)

    schedule.refresh_from_db()
    assert (schedule.next_at, schedule.grace_s, schedule.allows_overlap) == (MONDAY, 60, True)


def test_a_time_that_has_come_is_dealt_with_before_the_new_ones(alice: User) -> None:
    schedule = make(alice)
    come = datetime.now(UTC) - timedelta(minutes=5)
    type(schedule).objects.update(next_at=come)

    change_schedule(schedule.pk, cron="0 6 1 1 *", **WHY)

    schedule.refresh_from_db()
    assert schedule.next_at == come
    submitting.run_cycle(datetime.now(UTC))
    assert outcomes(schedule) == [(come, "submitted")]
    schedule.refresh_from_db()
    assert schedule.next_at is not None
    assert (schedule.next_at.month, schedule.next_at.day) == (1, 1)


def test_a_paused_schedule_has_no_next_time_by_a_change(alice: User) -> None:
    schedule = make(alice)
    pause_schedules([schedule.pk], **WHY)

    change_schedule(schedule.pk, cron="0 7 * * tue", **WHY)

    schedule.refresh_from_db()
    assert (schedule.state, schedule.next_at, schedule.cron) == ("paused", None, "0 7 * * tue")


@pytest.mark.parametrize(
    ("terms", "fields"),
    [
        ({}, [""]),
        ({"cron": "0 6 * * mon"}, [""]),
        ({"cron": "x", "time_zone": "Mars", "grace_s": 1}, ["cron", "time_zone", "grace_s"]),
        ({"name": " "}, ["name"]),
        ({"kept_runs": 0}, ["kept_runs"]),
    ],
)
def test_faulty_changes_are_refused_whole(
    alice: User, terms: dict[str, Any], fields: list[str]
) -> None:
    schedule = make(alice)

    with pytest.raises(InvalidInput) as raised:
        change_schedule(schedule.pk, **terms, **WHY)

    assert [each.field for each in raised.value.findings] == fields
    schedule.refresh_from_db()
    assert (schedule.cron, schedule.next_at) == ("0 6 * * mon", MONDAY)
    assert not schedule.events.exists()


def test_a_change_needs_permission_a_reason_and_a_schedule_that_is_there(
    alice: User, charlie: User
) -> None:
    schedule, other = make(alice), make(alice, name="other")

    for error, asked in (
        (NotFound, {"schedule_id": 4711, **WHY}),
        (NotPermitted, {"schedule_id": schedule.pk, **WHY, "actor": Actor.person(charlie)}),
        (ReasonRequired, {"schedule_id": schedule.pk, **WHY, "reason": " "}),
        (Conflict, {"schedule_id": schedule.pk, **WHY, "name": "other"}),
    ):
        with pytest.raises(error):
            change_schedule(**{"kept_runs": 7, **asked})
    remove_schedules([other.pk], **WHY)
    with pytest.raises(Conflict):
        change_schedule(other.pk, kept_runs=7, **WHY)
    schedule.refresh_from_db()
    assert (schedule.name, schedule.kept_runs) == ("weekly", 100)
