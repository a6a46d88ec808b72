"""Views that send workspace files, pictures, files of attempts and their output so far."""

from __future__ import annotations

from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from portal.shared.ranged_downloads import send_in_pieces
from portal.web.shared.downloads import send_download, send_picture
from portal.web.shared.pages import page
from wms.core.errors import NotFound
from wms.dags.reading.selectors import find_dag
from wms.jobs.models import AttemptFile
from wms.jobs.output.streams import stream_text
from wms.jobs.selectors import find_attempt_file, find_job, find_stream, find_workspace_file


@require_safe
@page
def dag_file(request: HttpRequest, dag_id: int, path: str) -> HttpResponseBase:
    """A file of a DAG's workspace, as a download."""
    dag = find_dag(request.user, dag_id)
    file = find_workspace_file(dag.workspace_id, path)
    return send_download(request, file.blob, file.path)


@require_safe
@page
def dag_picture(request: HttpRequest, dag_id: int, path: str) -> FileResponse:
    """A picture of a DAG's workspace, for an image element."""
    dag = find_dag(request.user, dag_id)
    file = find_workspace_file(dag.workspace_id, path)
    return send_picture(file.blob, file.path)


@require_safe
@page
def attempt_file(
    request: HttpRequest, job_id: int, number: int, kind: str, path: str
) -> HttpResponseBase:
    """A file that an attempt of a job sent back, as a download."""
    if kind not in AttemptFile.Kind.values:
        raise NotFound(f"There is no kind of file {kind!r}.")
    job = find_job(request.user, job_id)
    file = find_attempt_file(job, attempt=number, kind=kind, path=path)
    name = file.path if kind == AttemptFile.Kind.OUTPUT else f"job-{job_id}-{number}.{kind}.txt"
    return send_download(request, file.blob, name)


@require_safe
@page
def attempt_stream(request: HttpRequest, job_id: int, number: int, kind: str) -> HttpResponseBase:
    """Output that a running attempt has sent so far, as a download."""
    stream = find_stream(find_job(request.user, job_id), kind=kind, attempt=number)
    name = f"job-{job_id}-{number}.{stream.kind}.txt"
    return send_in_pieces(request, stream_text(stream), name=name)
