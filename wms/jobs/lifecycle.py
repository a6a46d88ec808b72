"""Lifecycle of jobs: applies state changes and writes their events, announced to inboxes.

The inboxes are of the submitter (DAG or cluster), of the grouping of failures, and of the notices
to owners who asked by `notification`. Also events that attempts tell, events without a change of
state, and the deletion of checkpoints of jobs that have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Q

from wms.core.actors import Actor
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.jobs.models import AttemptFile, Job, JobEvent
from wms.jobs.states import NOTES, TRANSITIONS, JobCause

#: Events that whoever submitted the job hears of through its inbox.
ANNOUNCED = frozenset({"complete", "fail", "kill", "reschedule", "hold", "update"})
#: The inbox of events that tell why something went wrong, and what these are.
FAILURE_TOPIC = "failed-jobs"
FAILURES = frozenset({"fail", "reschedule", "hold"})

#: The inbox of events that the owners of jobs asked to hear of by `notification`.
OWNER_TOPIC = "jobs-of-owners"
#: Holds that somebody wanted: their owners are not told of these.
_WANTED = frozenset(
    {
        JobCause.PERSON, JobCause.BEGUN_HELD, JobCause.DAG_HELD, JobCause.DAG_LEFT,
        JobCause.CLUSTER_HELD,
    }
)  # fmt: skip
#: Ends of jobs without a result, after which nothing goes on from their checkpoints.
_LOST = frozenset({"fail", "kill"})
_OF_CHECKPOINTS = (AttemptFile.Kind.CHECKPOINT, AttemptFile.Kind.NEW_CHECKPOINT)

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
    is_owner_told: bool = False,
    **changes: Any,
) -> Applied:
    """Move jobs by one event and announce it to the inboxes of those who submitted them.

    A hold of the whole DAG is not announced to it. Failures are announced to the grouping of
    failures, too, and with holds to the notices, where jobs ask for it. Of what went well the
    caller says that the owner `is_owner_told`, who knows the job, and drops its checkpoints.
    """
    applied, written = _MACHINE.apply(
        event,
        job_ids,
        actor=actor,
        reason=reason,
        cause=cause,
        facts=facts,
        is_announced=is_announced,
        **changes,
    )
    if event in _LOST and applied.changed:
        drop_checkpoints(applied.changed)
    if is_owner_told:
        _tell_owners({each.entity_id: each.event_id for each in written})
    elif event in {"fail", "hold"} and applied.changed and cause not in _WANTED:
        asking = Q(own__directives__notification__isnull=False)
        asking |= Q(description__content__directives__notification__isnull=False)
        jobs = set(Job.objects.filter(asking, pk__in=applied.changed).values_list("pk", flat=True))
        told = {each.entity_id: each.event_id for each in written if each.entity_id in jobs}
        _tell_owners(told)
    return applied


def drop_checkpoints(job_ids: Collection[int]) -> None:
    """Delete what is kept of checkpoints of jobs that go on no more."""
    files = AttemptFile.objects.filter(attempt__job_id__in=job_ids, kind__in=_OF_CHECKPOINTS)
    files.delete()


def _tell_owners(events: Mapping[int, int]) -> None:
    """Announce events to the notices, by the ids of their jobs."""
    kind = InboxEntry.Kind.JOB_EVENT
    if events:
        announce(
            InboxEntry(topic=OWNER_TOPIC, key=job_id, kind=kind, subject_id=event_id)
            for job_id, event_id in events.items()
        )


def note(event: str, facts: Mapping[int, Mapping[str, Any]], *, actor: Actor) -> None:
    """Write and announce an event of jobs that changes no state, with its facts."""
    _MACHINE.note(event, facts, states=NOTES[event], actor=actor)


def apply_told(
    event: str, job_ids: Collection[int], *, actor: Actor, **changes: Any
) -> dict[int, int]:
    """Move jobs by an event that their attempts will tell; its ids, by those of the moved jobs.

    The caller stores them in this transaction: see `wms.jobs.models.LoggedJobEvent`.
    """
    written = _MACHINE.apply_told(event, job_ids, actor=actor, **changes)
    return {each.entity_id: each.event_id for each in written}
