"""Selectors of jobs, their attempts, events, logs, streams and files, and of files of workspaces.

Also what open attempts hold of a pilot (cores, memory, disk, GPUs), jobs whose pauses are over, a
query expression for the first of the sites that a job names, and a condition for jobs of clusters.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import F, Max, Prefetch, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Coalesce

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.jobs.models import Attempt, AttemptFile, Job, LoggedJobEvent, Stream, WorkspaceFile
from wms.jobs.policy import jobs_within
from wms.jobs.sandboxes.leases import require_kept
from wms.jobs.states import JobState


def visible_jobs(user: User) -> QuerySet[Job]:
    """The jobs that the user may read: those of the user's frontends (`wms.accounting.walls`)."""
    return seen_by(user, Job.objects.all(), jobs_within)


def listed_jobs(user: User) -> QuerySet[Job]:
    """Visible jobs with the columns of a list, latest first."""
    columns = (
        "name", "owner__username", "workspace_id", "state", "state_since", "state_reason",
        "state_cause", "attempt_number", "max_attempts", "priority", "site_name", "not_before",
        "topic", "topic_key", "cluster_id", "process", "created_at",
    )  # fmt: skip
    return visible_jobs(user).select_related("owner").only(*columns).order_by("-pk")


def detailed_jobs(user: User) -> QuerySet[Job]:
    """Visible jobs with the columns of a job's page."""
    return visible_jobs(user).select_related("owner", "description")


def of_clusters(ids: Collection[int]) -> Q:
    """Condition for jobs of clusters with these ids, each of which may be that of its first job.

    Only the other jobs are in the index of clusters: most lists have one job.
    """
    return Q(pk__in=ids) | (Q(cluster_id__in=ids) & ~Q(cluster_id=F("pk")))


def latest_attempts(job_ids: Collection[int]) -> dict[int, Attempt]:
    """The current attempt of each job; jobs that no pilot took yet are absent."""
    attempts = Attempt.objects.filter(job_id__in=job_ids, number=F("job__attempt_number"))
    return {attempt.job_id: attempt for attempt in attempts}


def attempts_of(job: Job) -> QuerySet[Attempt]:
    """All attempts of a job, latest first, with their files and streams."""
    files = AttemptFile.objects.select_related("blob").order_by("kind", "path")
    with_files = job.attempts.prefetch_related(Prefetch("files", files), "streams")
    return with_files.order_by("-number")


def attempts_of_pilot(user: User, pilot_id: int) -> QuerySet[Attempt]:
    """Attempts of a pilot with their jobs, of those that the user may see, latest first."""
    return (
        seen_by(user, Attempt.objects.filter(pilot_id=pilot_id), _attempts_within)
        .select_related("job")
        .defer("job__own")
        .order_by("-pk")
    )


def _attempts_within(walls: Walls) -> Q:
    return Q(job__in=Job.objects.filter(jobs_within(walls)).values("pk"))


def held_in_pilot(pilot_id: int) -> dict[str, int]:
    """Cores, memory and disk in MB, and GPUs that open attempts hold of their pilot. One query."""
    attempts = Attempt.objects.filter(pilot_id=pilot_id, outcome="")
    amounts = ("cores", "memory_mb", "gpus", "disk_mb")
    return attempts.aggregate(**{name: Sum(name, default=0) for name in amounts})


def events_of_job(job: Job) -> QuerySet[LoggedJobEvent]:
    """The events of a job, latest first."""
    return job.events.order_by("-pk")


def find_job(user: User, job_id: int) -> Job:
    """One visible job. Raises NotFound."""
    job = detailed_jobs(user).filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}, or you may not see it.")
    return job


def jobs_with_all(user: User) -> QuerySet[Job]:
    """Visible jobs with their attempts, the attempts' files, and their events, latest first."""
    files = AttemptFile.objects.select_related("blob").order_by("kind", "path")
    attempts = Attempt.objects.prefetch_related(Prefetch("files", files)).order_by("-number")
    return detailed_jobs(user).prefetch_related(
        Prefetch("attempts", attempts), Prefetch("events", LoggedJobEvent.objects.order_by("-pk"))
    )


def latest_printing(job: Job, *, kind: str) -> int | None:
    """The latest attempt that has sent any of its output, as a file or while it ran."""
    sent = Q(files__kind=kind) | Q(streams__kind=kind, streams__size_bytes__gt=0)
    latest: int | None = job.attempts.filter(sent).aggregate(latest=Max("number"))["latest"]
    return latest


def find_log(job: Job, *, kind: AttemptFile.Kind, attempt: int | None = None) -> AttemptFile:
    """Log file of an attempt; by default of the latest that sent one.

    Raises NotFound, which tells if it was removed at the end of its lease.
    """
    files = AttemptFile.objects.filter(attempt__job=job, kind=kind).select_related("blob")
    if attempt is not None:
        files = files.filter(attempt__number=attempt)
    file = files.order_by("-attempt__number").first()
    if file is None:
        require_kept(job)
        raise NotFound(f"Job {job.pk} has sent no {kind.label}.")
    return file


def find_stream(job: Job, *, kind: str, attempt: int | None = None) -> Stream:
    """Output stream of an attempt; by default of the latest attempt that has one.

    Raises NotFound.
    """
    streams = Stream.objects.filter(attempt__job=job, kind=kind, size_bytes__gt=0)
    if attempt is not None:
        streams = streams.filter(attempt__number=attempt)
    stream = streams.select_related("attempt").order_by("-attempt__number").first()
    if stream is None:
        raise NotFound(f"Job {job.pk} has sent no {kind}.")
    return stream


def files_of_workspace(workspace_id: int) -> QuerySet[WorkspaceFile]:
    """Files of a workspace by name, with their contents and the attempts that made them."""
    files = WorkspaceFile.objects.filter(workspace_id=workspace_id)
    return files.select_related("blob", "attempt").order_by("path")


def find_workspace_file(workspace_id: int, path: str) -> WorkspaceFile:
    """One file of a workspace. Raises NotFound."""
    # PostgreSQL has no null character to compare with.
    is_name = "\0" not in path
    file = files_of_workspace(workspace_id).filter(path=path).first() if is_name else None
    if file is None:
        raise NotFound(f"There is no file {path!r}.")
    return file


def find_attempt_file(job: Job, *, attempt: int, kind: str, path: str) -> AttemptFile:
    """One file that an attempt sent back. Raises NotFound, which tells if it was removed."""
    files = AttemptFile.objects.filter(attempt__job=job, attempt__number=attempt)
    file = files.filter(kind=kind, path=path).select_related("blob").first()
    if file is None:
        require_kept(job)
        raise NotFound(f"Attempt {attempt} of job {job.pk} has sent no such file.")
    return file


def paused_until(at: datetime) -> QuerySet[Job]:
    """Rescheduled jobs whose pauses are over by then."""
    return Job.objects.filter(state=JobState.RECEIVED, not_before__lte=at)


def first_site(job: str = "") -> KeyTextTransform:
    """Expression of the first site that a job may run at; `job` leads to it, as in `job__`."""
    own, shared = (
        KeyTransform("sites", KeyTransform("needs", f"{job}{column}"))
        for column in ("own", "description__content")
    )
    return KeyTextTransform(0, Coalesce(own, shared))
