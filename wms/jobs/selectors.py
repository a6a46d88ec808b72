"""Reading jobs, their attempts, events and files."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import F, Prefetch, QuerySet

from wms.core.models import User
from wms.jobs.models import Attempt, AttemptFile, Job, JobEvent


def visible_jobs(user: User) -> QuerySet[Job]:
    """The jobs that the user may read: at present all of them."""
    return Job.objects.all() if user.is_active else Job.objects.none()


def listed_jobs(user: User) -> QuerySet[Job]:
    """Visible jobs with what a line of a list shows, latest first."""
    columns = (
        "name", "owner__username", "workspace_id", "state", "state_since", "state_reason",
        "attempt_number", "max_attempts", "created_at",
    )  # fmt: skip
    return visible_jobs(user).select_related("owner").only(*columns).order_by("-pk")


def detailed_jobs(user: User) -> QuerySet[Job]:
    """Visible jobs with what a job's page shows."""
    return visible_jobs(user).select_related("owner")


def latest_attempts(job_ids: Collection[int]) -> dict[int, Attempt]:
    """The current attempt of each job; jobs that no pilot took yet are absent."""
    attempts = Attempt.objects.filter(job_id__in=job_ids, number=F("job__attempt_number"))
    return {attempt.job_id: attempt for attempt in attempts}


def attempts_of(job: Job) -> QuerySet[Attempt]:
    """All attempts of a job, latest first, with their files."""
    files = AttemptFile.objects.select_related("blob").order_by("kind", "path")
    return job.attempts.prefetch_related(Prefetch("files", files)).order_by("-number")


def attempts_of_pilot(pilot_id: int) -> QuerySet[Attempt]:
    """What a pilot ran, latest first, with the jobs."""
    return (
        Attempt.objects.filter(pilot_id=pilot_id)
        .select_related("job")
        .defer("job__needs", "job__attributes", "job__environment", "job__arguments")
        .order_by("-pk")
    )


def events_of_job(job: Job) -> QuerySet[JobEvent]:
    """The events of a job, latest first."""
    return job.events.order_by("-pk")
