"""The list of jobs and a job's page."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from matching.needs import Needs
from portal.filters import JobFilter
from portal.web.listing import listing_of
from portal.web.needs import facts_of
from portal.web.pages import page, render_page
from wms.core.errors import NotFound
from wms.dags.models import Dag, Node
from wms.dags.selectors import dags_of_jobs, nodes_of_jobs
from wms.jobs.blobs import read_tail
from wms.jobs.models import Attempt, AttemptFile, Job
from wms.jobs.selectors import (
    attempts_of,
    events_of_job,
    find_job,
    latest_attempts,
    listed_jobs,
)
from wms.jobs.states import JobState
from wms.taskqueues.selectors import task_queue_of

_EVENTS_SHOWN = 100
_TAIL_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job of the list, with where it belongs and where it was last tried."""

    job: Job
    dag: Dag | None
    node: Node | None
    attempt: Attempt | None


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of what an attempt printed."""

    kind: str
    file: AttemptFile | None
    text: str
    is_cut: bool


@require_safe
@page
def job_list(request: HttpRequest) -> HttpResponse:
    """Jobs by state, owner, DAG and name, latest first."""
    listing = listing_of(request, JobFilter, listed_jobs(request.user), JobState.values)
    lines = _lines(listing.page.rows)
    return render_page(request, "jobs", {"listing": listing, "lines": lines})


def _lines(jobs: list[Job]) -> list[JobLine]:
    ids = [job.pk for job in jobs]
    dags, nodes, attempts = dags_of_jobs(jobs), nodes_of_jobs(jobs), latest_attempts(ids)
    return [JobLine(job, dags.get(job.pk), nodes.get(job.pk), attempts.get(job.pk)) for job in jobs]


@require_safe
@page
def job_page(request: HttpRequest, job_id: int) -> HttpResponse:
    """Everything about one job; `?attempt=n` shows what an earlier attempt printed."""
    job = find_job(request.user, job_id)
    attempts = list(attempts_of(job))
    chosen = _chosen(attempts, request.GET.get("attempt", ""))
    events = list(events_of_job(job)[: _EVENTS_SHOWN + 1])
    context = {
        "job": job,
        "needs": facts_of(Needs.from_dict(job.needs)),
        "task_queue": task_queue_of(job.pk),
        "dag": dags_of_jobs([job]).get(job.pk),
        "node": nodes_of_jobs([job]).get(job.pk),
        "attempts": attempts,
        "chosen": chosen,
        "tails": [_tail(chosen, kind) for kind in ("stdout", "stderr")] if chosen else [],
        "outputs": _outputs(chosen),
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
    }
    return render_page(request, "job", context)


def _chosen(attempts: list[Attempt], number: str) -> Attempt | None:
    if not number:
        return attempts[0] if attempts else None
    for attempt in attempts:
        if str(attempt.number) == number:
            return attempt
    raise NotFound(f"The job has no attempt {number}.")


def _tail(attempt: Attempt, kind: str) -> Tail:
    file = next((file for file in attempt.files.all() if file.kind == kind), None)
    if file is None:
        return Tail(kind, None, "", False)
    text = read_tail(file.blob_id, limit_bytes=_TAIL_BYTES)
    return Tail(kind, file, text, file.blob.size_bytes > _TAIL_BYTES)


def _outputs(attempt: Attempt | None) -> list[AttemptFile]:
    files = attempt.files.all() if attempt else []
    return [file for file in files if file.kind == AttemptFile.Kind.OUTPUT]
