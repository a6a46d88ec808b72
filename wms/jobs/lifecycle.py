"""The one place where a job changes its state, and where its events are written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from wms.core.actors import Actor
from wms.core.inbox import announce
from wms.core.models import EventRecord, InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.jobs.models import Job, JobEvent
from wms.jobs.states import NOTES, TRANSITIONS

_MACHINE = StateMachine(model=Job, event_model=JobEvent, subject="job", transitions=TRANSITIONS)

#: Events that whoever submitted the job hears of through its inbox.
ANNOUNCED = frozenset({"complete", "fail", "kill", "reschedule", "hold", "update"})


@transaction.atomic
def apply(
    event: str,
    job_ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    is_announced: bool = True,
    **changes: Any,
) -> Applied:
    """Move jobs by one event and announce it to the inboxes of those who submitted them.

    A hold may be kept from them: whoever holds the whole DAG knows of it already.
    """
    applied, events = _MACHINE.apply(
        event, job_ids, actor=actor, reason=reason, facts=facts, **changes
    )
    if is_announced and event in ANNOUNCED and applied.changed:
        _announce(events)
    return applied


@transaction.atomic
def note(event: str, facts: Mapping[int, Mapping[str, Any]], *, actor: Actor) -> None:
    """Write an event that changes no state of these jobs, with its facts, and announce it."""
    events = _MACHINE.note(event, facts, states=NOTES[event], actor=actor)
    if event in ANNOUNCED and events:
        _announce(events)


def begin(event: str, job_ids: Sequence[int], *, actor: Actor) -> None:
    """Write the first event of jobs that this transaction has inserted in the event's target."""
    _MACHINE.begin(event, job_ids, actor=actor)


def _announce(events: Iterable[EventRecord]) -> None:
    event_by_job = {record.job_id: record.pk for record in events if isinstance(record, JobEvent)}
    listeners = Job.objects.filter(pk__in=event_by_job).exclude(topic="")
    announce(
        InboxEntry(topic=topic, key=key, event_id=event_by_job[job_id])
        for job_id, topic, key in listeners.values_list("pk", "topic", "topic_key")
    )
