"""Services on pilots: drain one, stop the pilot of a job after it, remove one at once.

Permitted and audited. The jobs of a removed pilot wait again.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from wms.accounting.walls import within_reach
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, NotFound, ReasonRequired
from wms.core.loops import wake
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.stale import refuse_stale
from wms.core.statemachine import DatabaseTime
from wms.jobs.attempts import rescheduling
from wms.jobs.models import Attempt, Job
from wms.jobs.policy import jobs_within
from wms.jobs.services import open_attempt
from wms.jobs.states import JobCause
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.monitoring.batch_poller import POLL_TASK
from wms.pilots.policy import pilots_in_reach, require_steering
from wms.pilots.states import ALIVE


@transaction.atomic
def drain_pilot(uuid: UUID, *, actor: Actor, reason: str) -> Pilot:
    """Let a pilot take no more jobs, and end after those at hand; one that waits ends at its start.

    Raises NotFound, NotPermitted, ReasonRequired, and Conflict when it has ended or drains already.
    """
    pilot = _locked(Q(uuid=uuid), f"pilot {uuid}", "drain", actor=actor, reason=reason)
    return _drain(pilot, actor=actor, reason=reason)


@transaction.atomic
def stop_after_job(job_id: int, *, actor: Actor, reason: str, seen: str = "") -> Pilot:
    """Let the pilot that has this job take no more, and end after those at hand.

    `seen`, where given, is the state in which the actor saw the job. Raises NotFound, NotPermitted,
    ReasonRequired, and Conflict when no pilot has the job, it drains already, or the job is in
    another state.
    """
    require_role(actor, Role.SHIFTER, "stop pilots after a job")
    if not within_reach(actor, Job.objects.filter(pk=job_id), jobs_within).exists():
        raise NotFound(f"There is no job {job_id}.")
    pilot_id = open_attempt(job_id).pilot_id
    named = f"the pilot of job {job_id}"
    pilot = _locked(Q(pk=pilot_id), named, "drain", actor=actor, reason=reason)
    _drain(pilot, actor=actor, reason=reason)
    # Once the pilot is locked, as it is when it says what became of its jobs.
    refuse_stale(seen, Job.objects.get(pk=job_id).state, what=f"job {job_id}")
    return pilot


@transaction.atomic
def remove_pilot(uuid: UUID, *, actor: Actor, reason: str) -> Pilot:
    """End a pilot at once: its jobs wait again, at no cost to them, and it is cancelled.

    The pilot itself hears it with its next heartbeat; a batch system that does not answer is asked
    to cancel again. Raises NotFound, NotPermitted, ReasonRequired, and Conflict when it has ended.
    """
    pilot = _locked(Q(uuid=uuid), f"pilot {uuid}", "remove", actor=actor, reason=reason)
    why = reason.strip()
    lifecycle.apply("remove", [pilot.pk], actor=actor, reason=why, ended_at=DatabaseTime())
    rescheduling.spare_attempts_of_pilots([pilot.pk])
    rescheduling.reschedule_jobs_of_pilots(
        [pilot.pk],
        outcome=Attempt.Outcome.LOST,
        actor=actor,
        reason=f"its pilot was removed: {why}",
        cause=JobCause.PILOT_REMOVED,
        is_at_fault=False,
    )
    record_action("remove pilot", target=f"pilot {pilot.pk}", actor=actor, reason=why)
    transaction.on_commit(partial(wake, POLL_TASK, pilot.queue_id))
    pilot.refresh_from_db()
    return pilot


def _locked(which: Q, named: str, event: str, *, actor: Actor, reason: str) -> Pilot:
    """The living pilot, locked. Raises NotPermitted, ReasonRequired, NotFound and Conflict."""
    locked = Pilot.objects.select_for_update(of=("self",)).select_related("queue__site")
    pilot = pilots_in_reach(actor, locked.filter(which)).first()
    if pilot is None:
        raise NotFound(f"There is no {named}.")
    require_steering(actor, f"{event} pilots", pilot.queue.site)
    if not reason.strip():
        raise ReasonRequired(event)
    if pilot.state not in ALIVE:
        raise Conflict(f"The pilot has ended: it is {pilot.state}.")
    return pilot


def _drain(pilot: Pilot, *, actor: Actor, reason: str) -> Pilot:
    reason = reason.strip()
    if pilot.is_remote:
        raise Conflict("The pilot has its jobs from another installation, which drains it.")
    if pilot.drain_reason:
        raise Conflict(f"The pilot is to take no more jobs already: {pilot.drain_reason}")
    pilot.drain_reason = reason
    pilot.save(update_fields=["drain_reason"])
    lifecycle.note("drain", {pilot.pk: {"reason": reason}}, actor=actor)
    record_action("drain pilot", target=f"pilot {pilot.pk}", actor=actor, reason=reason)
    return pilot
