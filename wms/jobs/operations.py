"""Operations on jobs: create workspace, submit, bind to a pilot, hold, release, kill, fail.

Also the closing of attempts, and putting waiting jobs into TaskQueues or moving them to others.
Permissions are checked by the callers (`wms.jobs.services`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from django.db import transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Now

from matching.task_queues.needs import Needs
from wms.accounting.services import require_group_of_token
from wms.core.actors import Actor
from wms.core.database.statements import sent_ahead
from wms.core.models import User
from wms.core.statemachine import Increment
from wms.core.transitions import Applied
from wms.jobs import lifecycle, prepared_statements
from wms.jobs.accounting import note_ends
from wms.jobs.binding.scopes import within_scopes
from wms.jobs.concurrency_limits import amounts_of
from wms.jobs.directives import Directives
from wms.jobs.input_data.sets import within_inputs
from wms.jobs.models import Attempt, Blob, Job, Workspace, WorkspaceFile
from wms.jobs.models.jobs import DESCRIBED_COLUMNS
from wms.jobs.specs import JobSpec
from wms.jobs.states import QUEUED, WITH_PILOT, JobCause, JobState
from wms.jobs.writing.job_writer import JobOrigin, JobWriter
from wms.taskqueues import operations as taskqueues


class _Placed(NamedTuple):
    """A job that is to wait, with what says at which sites it may."""

    entry: taskqueues.Entry
    workspace_id: int
    late: Mapping[str, Any] | None
    directives: Mapping[str, Any] | None


class AddJobs(Protocol):
    """Function that stores jobs of one cluster; their ids."""

    def __call__(
        self,
        specs: Sequence[JobSpec],
        processes: Sequence[int] = (),
        origin: JobOrigin | None = None,
    ) -> list[int]:
        """Take jobs, with their numbers in the cluster, if these are not from 0 on.

        With an origin where it is another one than that of the submission.
        """
        ...


def create_workspace(owner: User, files: Mapping[str, Blob], *, owner_group: str = "") -> Workspace:
    """Create a workspace that contains these files, which count for the owner and this group.

    Raises InvalidInput for no group where the owner's token is limited to a frontend.
    """
    require_group_of_token(owner, has_group=bool(owner_group))
    workspace = Workspace.objects.create(
        owner=owner, owner_group=owner_group, limited_to=owner.limited_to
    )
    WorkspaceFile.objects.bulk_create(
        [WorkspaceFile(workspace=workspace, path=path, blob=blob) for path, blob in files.items()],
        batch_size=1000,
    )
    return workspace


@contextmanager
def submission(
    *,
    owner: User,
    workspace: Workspace,
    actor: Actor,
    topic: str = "",
    topic_key: int = 0,
    expected: int = 1,
    cluster_id: int = 0,
) -> Iterator[AddJobs]:
    """Context for submitting jobs, which are stored while the next are made.

    Gives a function that takes the jobs of one cluster and returns their ids, which rise with every
    call. The jobs of a cluster with an id of its own come with their numbers in it. At the end all
    are in their TaskQueues. The end of each job is announced to the inbox of `topic` under
    `topic_key`. `expected` is about how many jobs will come.
    """
    entries: list[_Placed] = []
    held: list[int] = []
    with transaction.atomic():
        own = JobOrigin(owner.pk, workspace.pk, topic_key)
        writer = JobWriter(own, actor=actor, topic=topic, expected=expected)

        def add(
            specs: Sequence[JobSpec],
            processes: Sequence[int] = (),
            origin: JobOrigin | None = None,
        ) -> list[int]:
            ids = writer.write(specs, cluster_id=cluster_id, processes=processes, origin=origin)
            entries.extend(
                _Placed(
                    taskqueues.Entry(pk, spec.needs, spec.priority, spec.avoided_hosts),
                    (origin or own).workspace_id,
                    spec.late,
                    spec.directives,
                )
                for pk, spec in zip(ids, specs, strict=True)
            )
            held.extend(
                pk
                for pk, spec in zip(ids, specs, strict=True)
                if spec.directives and Directives.of(spec.directives).is_held
            )
            return ids

        with sent_ahead():
            yield add
            writer.flush()
        taskqueues.enqueue(_at_their_sites(entries))
        if held:
            cause = JobCause.BEGUN_HELD
            hold_jobs(held, actor=actor, reason="it was submitted with hold = true", cause=cause)


def submit_jobs(
    specs: Sequence[JobSpec], *, owner: User, workspace: Workspace, actor: Actor
) -> list[int]:
    """Submit jobs, each a cluster of its own; their ids in the order of the specs."""
    with submission(owner=owner, workspace=workspace, actor=actor, expected=len(specs)) as add:
        return [job_id for spec in specs for job_id in add([spec])]


@transaction.atomic(savepoint=False)
def bind_to_pilot(
    claimed: taskqueues.Claimed,
    *,
    pilot_id: int,
    site_name: str,
    host: str,
    free_cores: int,
    actor: Actor,
    claim_key: str = "",
) -> Attempt | None:
    """Begin a new attempt of a job that was just claimed; None when it does not wait any more.

    It holds what it needs of its pilot until its end, and as many of the free cores as it can use.
    """
    job_id, needs = claimed.job_id, claimed.needs
    events = lifecycle.apply_told(
        "match", [job_id], actor=actor, attempt_number=Increment(), site_name=site_name
    )
    if not events:
        return None
    job = prepared_statements.read_job(job_id)
    attempt = Attempt(
        job=job,
        number=job.attempt_number,
        pilot_id=pilot_id,
        site_name=site_name,
        host=host,
        actor=actor.name,
        match_event=events[job_id],
        claim_key=claim_key,
        job_type=needs.job_type,
        owner_group=needs.owner_group,
        cores=max(needs.cores, min(needs.max_cores, free_cores)),
        memory_mb=needs.memory_mb,
        gpus=needs.gpus,
        disk_mb=needs.disk_mb,
        limits=amounts_of(needs),
    )
    prepared_statements.insert_attempt(attempt)
    return attempt


@transaction.atomic
def hold_jobs(
    job_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    cause: str = "",
    is_announced: bool = True,
    facts: Mapping[int, Mapping[str, Any]] | None = None,
) -> Applied:
    """Keep jobs from running until they are released; a running payload is stopped.

    It is stopped when its pilot reports next, and begins anew after the release. Whoever submitted
    the jobs hears of it and it is counted, unless it is not to be announced.
    """
    taskqueues.withdraw(job_ids)
    # All locked in id order first, as everybody does: the hold, and what is done to the attempts
    # of those that have a pilot, see them in one state.
    locked = Job.objects.filter(pk__in=job_ids).order_by("pk").select_for_update()
    with_pilot = list(locked.filter(state__in=WITH_PILOT).values_list("pk", flat=True))
    applied = lifecycle.apply(
        "hold",
        job_ids,
        actor=actor,
        reason=reason,
        cause=cause,
        facts=facts,
        is_announced=is_announced,
        hold_count=Increment(int(is_announced)),
    )
    # Once more, now that the jobs are locked: one may have been rescheduled in between.
    taskqueues.withdraw(applied.changed, are_locked=True)
    _stop_attempts(with_pilot, reason=reason)
    return applied


def _stop_attempts(job_ids: Collection[int], *, reason: str) -> None:
    """Close the open attempts of jobs that are to run again later: it costs them none of theirs."""
    if not job_ids:
        return
    stopped = Attempt.objects.filter(job_id__in=job_ids, outcome="")
    Job.objects.filter(pk__in=stopped.values("job_id")).update(max_attempts=F("max_attempts") + 1)
    begun = Case(
        When(started_at=None, then=Value(Attempt.Outcome.NOT_RUN.value)),
        default=Value(Attempt.Outcome.KILLED.value),
    )
    note_ends(job_ids)
    stopped.update(
        outcome=begun, reason=reason, ended_at=Now(), stopped_by=Attempt.StoppedBy.SERVER
    )


@transaction.atomic
def release_jobs(
    job_ids: Collection[int], *, actor: Actor, reason: str = "", cause: str = ""
) -> Applied:
    """Put held jobs back into their TaskQueues."""
    applied = lifecycle.apply("release", job_ids, actor=actor, reason=reason, cause=cause)
    enqueue_again(applied.changed)
    return applied


@transaction.atomic
def kill_jobs(job_ids: Collection[int], *, actor: Actor, reason: str, cause: str = "") -> Applied:
    """End jobs for good; a running payload is stopped when its pilot reports next."""
    taskqueues.withdraw(job_ids)
    applied = lifecycle.apply("kill", job_ids, actor=actor, reason=reason, cause=cause)
    # Once more, now that the jobs are locked: one may have been rescheduled in between.
    taskqueues.withdraw(applied.changed, are_locked=True)
    close_attempts(
        applied.changed,
        outcome=Attempt.Outcome.KILLED,
        reason=reason,
        stopped_by=Attempt.StoppedBy.SERVER,
    )
    return applied


@transaction.atomic
def kill_queued_jobs(
    job_ids: Collection[int], *, actor: Actor, reason: str, cause: str = ""
) -> Applied:
    """End those jobs that no pilot has, and leave the others to their pilots."""
    taskqueues.withdraw(job_ids)
    queued = Job.objects.filter(pk__in=job_ids, state__in=QUEUED).order_by("pk")
    locked = list(queued.select_for_update().values_list("pk", flat=True))
    return kill_jobs(locked, actor=actor, reason=reason, cause=cause)


def close_attempts(
    job_ids: Collection[int], *, outcome: Attempt.Outcome, reason: str, stopped_by: str = ""
) -> None:
    """Mark the open attempts of these jobs as ended; a later message about them is refused."""
    if not job_ids:
        return
    by = {"stopped_by": stopped_by} if stopped_by else {}
    note_ends(job_ids)
    Attempt.objects.filter(job_id__in=job_ids, outcome="").update(
        outcome=outcome, reason=reason, ended_at=Now(), **by
    )


@transaction.atomic
def fail_unrunnable(attempt: Attempt, *, actor: Actor, reason: str, cause: JobCause) -> None:
    """End a job that no pilot can run, because of its own description.

    Nothing happens when the job has gone on to another attempt meanwhile.
    """
    job = Job.objects.select_for_update().get(pk=attempt.job_id)
    if job.attempt_number != attempt.number:
        return
    applied = lifecycle.apply("fail", [attempt.job_id], actor=actor, reason=reason, cause=cause)
    close_attempts(applied.changed, outcome=Attempt.Outcome.FAILED, reason=reason)


@transaction.atomic
def hold_unfilled(attempt: Attempt, *, actor: Actor, reason: str) -> None:
    """Hold a job whose late values the site that drew it does not give; the attempt is not run.

    Nothing happens when the job has gone on to another attempt meanwhile.
    """
    job = Job.objects.select_for_update().get(pk=attempt.job_id)
    if job.attempt_number == attempt.number and job.state in WITH_PILOT:
        hold_jobs([job.pk], actor=actor, reason=reason, cause=JobCause.UNDEFINED)


def enqueue_again(job_ids: Collection[int]) -> None:
    """Put those of the jobs that wait into their TaskQueues. Once a transaction, as `enqueue`."""
    taskqueues.enqueue(_entries(job_ids))


def move_waiting(job_ids: Collection[int]) -> None:
    """Move those of the jobs that wait to the TaskQueues of what they need now.

    Once a transaction, as `enqueue`; after `wms.jobs.binding.scopes.change_scopes`, and after the
    change of a set of inputs.
    """
    taskqueues.move(_entries(job_ids))


def _entries(job_ids: Collection[int]) -> list[taskqueues.Entry]:
    waiting = Job.objects.filter(pk__in=job_ids, state=JobState.WAITING)
    jobs = waiting.select_related("description").only("priority", "workspace", *DESCRIBED_COLUMNS)
    return _at_their_sites(
        [
            _Placed(
                taskqueues.Entry(
                    job.pk, Needs.from_dict(job.needs), job.priority, tuple(job.avoided_hosts)
                ),
                job.workspace_id,
                job.late,
                job.directives,
            )
            for job in jobs
        ]
    )


def _at_their_sites(placed: Sequence[_Placed]) -> list[taskqueues.Entry]:
    """Entries for TaskQueues: within the scopes of the jobs, and near their inputs.

    In this order, as everybody locks them.
    """
    entries = within_scopes([(each.entry, each.late) for each in placed])
    return within_inputs(
        [
            (entry, each.workspace_id, each.directives)
            for entry, each in zip(entries, placed, strict=True)
        ]
    )
