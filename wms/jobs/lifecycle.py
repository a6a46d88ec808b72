"""State changes of jobs, with their events: the one place for both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wms.core.actors import Actor
from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.jobs.models import Job, JobEvent
from wms.jobs.states import NOTES, TRANSITIONS

#: Events that whoever submitted the job hears of through its inbox.
ANNOUNCED = frozenset({"complete", "fail", "kill", "reschedule", "hold", "update"})
#: The inbox of events that tell why something went wrong, and what these are.
FAILURE_TOPIC = "failed-jobs"
FAILURES = frozenset({"fail", "reschedule", "hold"})

_MACHINE = StateMachine(
    model=Job,
    event_model=JobEvent,
    subject="job",
    transitions=TRANSITIONS,
    announced=ANNOUNCED,
    observed=FAILURES,
    observers=FAILURE_TOPIC,
    has_causes=True,
    kind=InboxEntry.Kind.JOB_EVENT,
)


def apply(
    event: str,
    job_ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    cause: str = "",
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    is_announced: bool = True,
    **changes: Any,
) -> Applied:
    """Move jobs by one event and announce it to the inboxes of those who submitted them.

    A hold of the whole DAG is not announced to it. Failures are
    announced to the grouping of failures, too.
    """
    applied, _ = _MACHINE.apply(
        event,
        job_ids,
        actor=actor,
        reason=reason,
        cause=cause,
        facts=facts,
        is_announced=is_announced,
        **changes,
    )
    return applied


def note(event: str, facts: Mapping[int, Mapping[str, Any]], *, actor: Actor) -> None:
    """Write and announce an event of jobs that changes no state, with its facts."""
    _MACHINE.note(event, facts, states=NOTES[event], actor=actor)


def begin(event: str, job_ids: Sequence[int], *, actor: Actor) -> None:
    """Write the first event of jobs that this transaction has inserted in the event's target."""
    _MACHINE.begin(event, job_ids, actor=actor)
