"""Views of the job page and of its actions: kill, show output, stop its pilot after the job.

Further actions, such as hold and reschedule, are links to the preview of a bulk action.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from matching.task_queues.needs import Needs
from portal.shared.readable_logs import log_kinds
from portal.web.jobs.directives import directive_facts
from portal.web.jobs.needs import facts_of
from portal.web.shared.action_forms import ActionForm, Refused, offers_of
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import seen_by
from wms.actions.jobs import JOBS
from wms.actions.selectors import possible_actions
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.dags.reading.selectors import dags_of_jobs, nodes_of_jobs
from wms.jobs.binding.late_values import show_latest
from wms.jobs.binding.scopes import needs_now
from wms.jobs.clusters.selectors import cluster_of_job
from wms.jobs.content.blobs import read_tail
from wms.jobs.input_data.sets import near_inputs
from wms.jobs.models import Attempt, AttemptFile, Job, OutputLease, Stream
from wms.jobs.output.streams import stream_text, tail_of
from wms.jobs.sandboxes.leases import are_removed, lease_of_job
from wms.jobs.selectors import (
    attempts_of,
    events_of_job,
    find_job,
)
from wms.jobs.states import TERMINAL, JobState
from wms.pilots.selectors import pilots_of_attempts
from wms.placement.catalogue.locating import inputs_of
from wms.taskqueues.selectors import task_queue_of

_EVENTS_SHOWN = 100
_TAIL_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Tail:
    """End of an attempt's output: of the file that it sent, or of the stream while it ran.

    `stream` is there where the file is not.
    """

    kind: str
    file: AttemptFile | None = None
    stream: Stream | None = None
    text: str = ""
    size_bytes: int = 0

    @property
    def is_cut(self) -> bool:
        """True when the beginning is left out."""
        return self.size_bytes > _TAIL_BYTES


@require_safe
@page
def job_page(request: HttpRequest, job_id: int) -> HttpResponse:
    """Page of one job; `?attempt=n` shows the output of an earlier attempt."""
    return _show_job(request, find_job(request.user, job_id))


def _show_job(request: HttpRequest, job: Job, *, refused: Refused | None = None) -> HttpResponse:
    """Job page; the form of a refused action is open and shows the reason."""
    error = refused.error if refused else None
    fitting = possible_actions(request.user, JOBS, job.pk)
    attempts = list(attempts_of(job))
    chosen = _chosen(attempts, request.GET.get("attempt", ""))
    events = list(events_of_job(job)[: _EVENTS_SHOWN + 1])
    pilots = pilots_of_attempts(attempt.pilot_id for attempt in attempts)
    node = nodes_of_jobs([job]).get(job.pk)
    inputs, needs = inputs_of(job), needs_now(Needs.from_dict(job.needs), job.late)
    context = {
        "job": job,
        "late": show_latest(job),
        "needs": facts_of(near_inputs(needs, inputs)),
        "inputs": inputs,
        "directives": directive_facts(job),
        "task_queue": task_queue_of(job.pk) if job.state == JobState.WAITING else None,
        "dag": node.dag if node else dags_of_jobs([job]).get(job.pk),
        "node": node,
        "cluster": cluster_of_job(job),
        "attempts": attempts,
        "chosen": chosen,
        "unfenced": {pk for pk, each in pilots.items() if each.has_no_fence},
        "tails": [_tail(chosen, kind) for kind in ("stdout", "stderr")] if chosen else [],
        "outputs": _outputs(chosen),
        "sandbox": _sandbox(job),
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
        "offers": offers_of(
            [action for action in fitting if action.page],
            job.state,
            lambda name: reverse("web:steer-job", args=[job.pk, name]),
            refused=refused,
        ),
        # These show first what they do, in the way of all actions on many objects.
        "further": [action for action in fitting if not action.page],
        "error": error,
    }
    return render_page(request, "job", context, status=error.status if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def steer(request: HttpRequest, job_id: int, event: str) -> HttpResponse:
    """Kill a job, look at its output, stop its pilot after it; a refusal is shown at the form.

    Whoever had to log in again comes here by GET, and is led to the job.
    """
    find_job(request.user, job_id)
    action = JOBS.find_on_page(event)
    if action is None:
        raise NotFound(f"A job cannot be steered by {event!r}.")
    if request.method != "POST":
        return redirect("web:job", job_id=job_id)
    form = ActionForm(action, request.POST)
    try:
        action.act(job_id, form.order(Actor.person(request.user), seen=seen_by(request)))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        found = find_job(request.user, job_id)
        return _show_job(request, found, refused=Refused(form, error))
    messages.success(request, action.done)
    return _back(request, job_id)


def _back(request: HttpRequest, job_id: int) -> HttpResponse:
    """Redirect to the log page that had the form, or to the job."""
    kind, number = request.POST.get("log", ""), request.POST.get("attempt", "")
    if kind in log_kinds() and number.isascii() and number.isdigit() and len(number) <= 4:
        return redirect("web:attempt-log", job_id=job_id, number=int(number), kind=kind)
    return redirect("web:job", job_id=job_id)


def _chosen(attempts: list[Attempt], number: str) -> Attempt | None:
    if not number:
        return attempts[0] if attempts else None
    for attempt in attempts:
        if str(attempt.number) == number:
            return attempt
    raise NotFound(f"The job has no attempt {number}.")


def _tail(attempt: Attempt, kind: str) -> Tail:
    file = next((file for file in attempt.files.all() if file.kind == kind), None)
    if file is not None:
        text = read_tail(file.blob_id, limit_bytes=_TAIL_BYTES)
        return Tail(kind, file=file, text=text, size_bytes=file.blob.size_bytes)
    stream = next((each for each in attempt.streams.all() if each.kind == kind), None)
    if stream is None:
        return Tail(kind)
    text = tail_of(stream_text(stream), limit_bytes=_TAIL_BYTES)
    return Tail(kind, stream=stream, text=text, size_bytes=stream.size_bytes)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What the page tells of the outputs of a job that has ended, all together.

    `lease` is there for those of a cluster that has ended.
    """

    lease: OutputLease | None
    are_removed: bool


def _sandbox(job: Job) -> Sandbox | None:
    if job.state not in TERMINAL:
        return None
    lease = lease_of_job(job)
    return Sandbox(lease, are_removed(job, lease))


def _outputs(attempt: Attempt | None) -> list[AttemptFile]:
    files = attempt.files.all() if attempt else []
    return [file for file in files if file.kind == AttemptFile.Kind.OUTPUT]
