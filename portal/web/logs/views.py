"""Views of log pages: attempts, pilots, scripts, and text files of a workspace."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.shared.readable_logs import (
    attempt_of,
    log_kinds,
    log_of_attempt,
    log_of_blob,
    log_of_pilot,
    log_of_script,
)
from portal.web.logs.viewer import log_page
from portal.web.shared.pages import Link, page
from wms.core.errors import NotFound
from wms.dags.models import ScriptRun
from wms.dags.reading.node_selectors import find_script_run
from wms.dags.reading.selectors import find_dag
from wms.jobs.models import Job
from wms.jobs.output.lines import WINDOW_BYTES
from wms.jobs.policy import may_steer
from wms.jobs.selectors import find_job, find_workspace_file
from wms.pilots.selectors import find_pilot_by_number, log_tail

#: Most attempts of a job with a link.
_ATTEMPTS_SHOWN = 20
_TAIL_BYTES = 32 * 1024


@require_safe
@page
def attempt_log(request: HttpRequest, job_id: int, number: int, kind: str) -> HttpResponse:
    """Stdout or stderr of a job's attempt, also while it runs."""
    if kind not in log_kinds():
        raise NotFound(f"There is no stream {kind!r}.")
    job = find_job(request.user, job_id)
    attempt = attempt_of(job, number)
    log = log_of_attempt(attempt, kind, now=timezone.now())
    file = next((each for each in attempt.files.all() if each.kind == kind), None)
    where = {"job_id": job.pk, "number": number, "kind": kind}
    if file is not None:
        download = reverse("web:attempt-file", kwargs={**where, "path": file.path})
    else:
        download = "" if log.missing else reverse("web:attempt-stream", kwargs=where)
    context = {
        "title": f"{kind} of {job.name}",
        "subtitle": f"attempt {number} of job {job.pk}, at {attempt.site_name}",
        "crumbs": [
            Link("Jobs", reverse("web:jobs")),
            Link(f"job {job.pk}", reverse("web:job", args=[job.pk]) + f"?attempt={number}"),
            Link(f"attempt {number}", ""),
        ],
        "tabs": _tabs(job, number, kind),
        "download": download,
        "peek": _peek(request, job) if log.is_growing else "",
        "kind": kind,
        "number": number,
        "outcome": (attempt.outcome, "attempt", "") if attempt.outcome else None,
    }
    return log_page(request, log, context)


class LogTab(NamedTuple):
    """Link to a related log."""

    label: str
    address: str
    is_shown: bool


def _tabs(job: Job, number: int, kind: str) -> list[list[LogTab]]:
    """Tabs: both streams of the attempt, and the same stream of the latest attempts."""
    streams = [LogTab(each, _address(job.pk, number, each), each == kind) for each in log_kinds()]
    latest = job.attempt_number
    attempts = [
        LogTab(f"attempt {each}", _address(job.pk, each, kind), each == number)
        for each in range(max(1, latest - _ATTEMPTS_SHOWN + 1), latest + 1)
    ]
    return [streams, attempts] if len(attempts) > 1 else [streams]


def _address(job_id: int, number: int, kind: str) -> str:
    return reverse("web:attempt-log", kwargs={"job_id": job_id, "number": number, "kind": kind})


def _peek(request: HttpRequest, job: Job) -> str:
    """Address that asks for fresh output, if the user may ask."""
    if not may_steer(request.user, job):
        return ""
    return reverse("web:steer-job", kwargs={"job_id": job.pk, "event": "peek"})


def _outcome_of(run: ScriptRun) -> tuple[str, str, str] | None:
    """End of a script as state, kind and text."""
    if run.exit_code is None:
        return None
    return "failed" if run.exit_code else "ended", "script", f"exit code {run.exit_code}"


@require_safe
@page
def script_log(request: HttpRequest, dag_id: int, run_id: int) -> HttpResponse:
    """Output of a script run."""
    run = find_script_run(request.user, dag_id, run_id)
    context = {
        "title": f"{run.get_kind_display()} of {run.node.name}",
        "subtitle": f"run {run.pk} of DAG {dag_id}",
        "crumbs": [
            Link("DAGs", reverse("web:dags")),
            Link(f"DAG {dag_id}", reverse("web:dag", args=[dag_id])),
            Link(run.node.name, reverse("web:node", args=[dag_id, run.node_id])),
            Link("script", ""),
        ],
        "download": reverse("web:script-output", args=[dag_id, run.pk]) if run.output else "",
        "outcome": _outcome_of(run),
    }
    return log_page(request, log_of_script(run), context)


@require_safe
@page
def file_log(request: HttpRequest, dag_id: int, path: str) -> HttpResponse:
    """Text file of a DAG's workspace: event logs, outputs, submitted files."""
    dag = find_dag(request.user, dag_id)
    file = find_workspace_file(dag.workspace_id, path)
    context = {
        "title": file.path,
        "subtitle": f"a file of DAG {dag_id}",
        "crumbs": [
            Link("DAGs", reverse("web:dags")),
            Link(f"DAG {dag_id}", reverse("web:dag", args=[dag_id]) + "?tab=files"),
            Link("file", ""),
        ],
        "download": reverse("web:dag-file", kwargs={"dag_id": dag_id, "path": path}),
    }
    return log_page(request, log_of_blob(file.blob, file.path), context)


@require_safe
@page
def pilot_log(request: HttpRequest, pilot_id: int) -> HttpResponse:
    """Pilot's log, as the pilot sent it or as its batch system has it.

    Its end alone is a part of the pilot's page, asked for apart: the batch system may be slow.
    """
    pilot = find_pilot_by_number(request.user, pilot_id)
    if request.htmx:
        tail = log_tail(pilot, limit_bytes=_TAIL_BYTES)
        return render(request, "web/pilot_log_part.html", {"tail": tail, "pilot_id": pilot_id})
    log = log_of_pilot(pilot, limit_bytes=WINDOW_BYTES)
    is_stored = log.updated_at is not None
    context = {
        "title": f"Log of pilot {pilot.pk}",
        "subtitle": f"at {pilot.queue.site.name}, {pilot.get_state_display()}",
        "crumbs": [
            Link("Pilots", reverse("web:pilots")),
            Link(str(pilot.pk), reverse("web:pilot", args=[pilot.pk])),
            Link("log", ""),
        ],
        "download": reverse("web:pilot-log-file", args=[pilot.pk]) if is_stored else "",
        "outcome": None if log.is_growing else (pilot.state, "pilot", ""),
    }
    return log_page(request, log, context)
