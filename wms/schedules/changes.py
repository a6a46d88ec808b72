"""Change of a schedule's terms: name, times, time zone, overlap, grace, records that are kept.

Also of the labels and the priority of the DAGs that it submits from then on. Its files and options
stay: another DAG is another schedule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.errors import Conflict, InvalidInput, ReasonRequired
from wms.core.labels import changed_labels, check_change
from wms.core.transitions import Applied
from wms.dags.priorities import checked_priority
from wms.schedules.cron import next_time, parse_cron, zone_named
from wms.schedules.lifecycle import SCHEDULES
from wms.schedules.models import Schedule
from wms.schedules.services import ScheduleTerms, faults_of, locked_schedules
from wms.schedules.states import NOTES, TERMINAL, ScheduleState

#: Terms by which the next time is found.
_OF_TIMES = {"cron", "time_zone"}


def terms_of(schedule: Schedule) -> ScheduleTerms:
    """The terms of a schedule as they are."""
    return ScheduleTerms(
        name=schedule.name,
        cron=schedule.cron,
        time_zone=schedule.time_zone,
        allows_overlap=schedule.allows_overlap,
        grace_s=schedule.grace_s,
        kept_runs=schedule.kept_runs,
    )


@transaction.atomic
def change_schedule(
    schedule_id: int,
    *,
    actor: Actor,
    reason: str,
    name: str | None = None,
    cron: str | None = None,
    time_zone: str | None = None,
    allows_overlap: bool | None = None,
    grace_s: int | None = None,
    kept_runs: int | None = None,
) -> Applied:
    """Change the terms that are given; the others stay, and so do the DAGs that were submitted.

    A time that has come and was not dealt with yet is dealt with. Raises NotFound, NotPermitted,
    ReasonRequired, Conflict for one that was removed or for a name that another one has, and
    InvalidInput with every fault.
    """
    [schedule] = locked_schedules([schedule_id], actor)
    if not reason.strip():
        raise ReasonRequired("change")
    if schedule.state in TERMINAL:
        raise Conflict(f"Schedule {schedule.pk} is {schedule.state}: it cannot be changed.")
    given: dict[str, Any] = {
        "name": name, "cron": None if cron is None else " ".join(cron.split()),
        "time_zone": time_zone, "allows_overlap": allows_overlap, "grace_s": grace_s,
        "kept_runs": kept_runs,
    }  # fmt: skip
    changes = {
        term: value
        for term, value in given.items()
        if value is not None and value != getattr(schedule, term)
    }
    if not changes:
        raise InvalidInput.of("nothing was changed")
    if faults := faults_of(replace(terms_of(schedule), **changes)):
        raise InvalidInput(faults)
    told = {term: [getattr(schedule, term), value] for term, value in changes.items()}
    _store(schedule, changes)
    SCHEDULES.note(
        "change",
        {schedule.pk: {"reason": reason.strip(), **told}},
        states=NOTES["change"],
        actor=actor,
    )
    record_action(
        "change schedule",
        target=f"schedule {schedule.pk}",
        actor=actor,
        reason=reason,
        facts=told,
    )
    return Applied([schedule.pk])


def _store(schedule: Schedule, changes: Mapping[str, Any]) -> None:
    for term, value in changes.items():
        setattr(schedule, term, value)
    columns, now = [*changes], timezone.now()
    is_to_come = schedule.next_at is not None and schedule.next_at > now
    if schedule.state == ScheduleState.ACTIVE and is_to_come and changes.keys() & _OF_TIMES:
        schedule.next_at = next_time(parse_cron(schedule.cron), zone_named(schedule.time_zone), now)
        columns.append("next_at")
    try:
        with transaction.atomic():
            schedule.save(update_fields=columns)
    except IntegrityError as error:
        raise Conflict(f"{schedule.owner} has a schedule {schedule.name!r} already.") from error


@transaction.atomic
def relabel_schedules(
    ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    add: Sequence[str] | None = None,
    remove: Sequence[str] | None = None,
) -> Applied:
    """Add labels to schedules and take others away; the DAGs to come have them.

    Those that were removed are skipped. Raises NotFound, NotPermitted, ReasonRequired,
    InvalidInput.
    """
    new, old = list(add or ()), list(remove or ())
    schedules = _changeable(ids, actor, reason, "label")
    check_change(new, old)
    changes = {each: changed_labels(each.labels, add=new, remove=old) for each in schedules}
    return _changed(changes, "labels", "label schedule", actor, reason, {"add": new, "remove": old})


@transaction.atomic
def prioritise_schedules(
    ids: Collection[int], *, priority: int, actor: Actor, reason: str
) -> Applied:
    """Give the DAGs that schedules submit from now on another priority.

    Those that were removed are skipped. Raises NotFound, NotPermitted, ReasonRequired,
    InvalidInput.
    """
    schedules = _changeable(ids, actor, reason, "prioritise")
    try:
        number = checked_priority(priority)
    except ValueError as error:
        raise InvalidInput.of(str(error), field="priority") from None
    changes = dict.fromkeys(schedules, number)
    return _changed(changes, "priority", "prioritise schedule", actor, reason, {"priority": number})


def _changeable(ids: Collection[int], actor: Actor, reason: str, event: str) -> list[Schedule]:
    schedules = locked_schedules(ids, actor)
    if not reason.strip():
        raise ReasonRequired(event)
    return [each for each in schedules if each.state not in TERMINAL]


def _changed(
    changes: Mapping[Schedule, Any],
    column: str,
    action: str,
    actor: Actor,
    reason: str,
    facts: Mapping[str, Any],
) -> Applied:
    """Store a value of each schedule, with an event for those that had another, and the audit."""
    told = {
        schedule.pk: {"reason": reason.strip(), column: [getattr(schedule, column), value]}
        for schedule, value in changes.items()
        if getattr(schedule, column) != value
    }
    for schedule, value in changes.items():
        setattr(schedule, column, value)
    Schedule.objects.bulk_update(changes, [column], batch_size=500)
    if told:
        SCHEDULES.note("change", told, states=NOTES["change"], actor=actor)
    ids = [schedule.pk for schedule in changes]
    targets = [f"schedule {pk}" for pk in ids]
    record_actions(action, targets=targets, actor=actor, reason=reason, facts=facts)
    return Applied(ids)
