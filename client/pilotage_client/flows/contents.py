"""Flows that read logs and fetch files."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ..model import LogPart, Raw
from ..wire import Flow, Request, Sink, query_of
from ..wire import path as at
from .asking import ask, get, listed


def log_part(
    path: str, *, offset: int | None = None, tail: int | None = None, attempt: int | None = None
) -> Flow[LogPart]:
    """Part of a log by its path below the API: its end, or what follows a byte."""
    query = query_of({"offset": offset, "tail": tail, "attempt": attempt})
    answer = yield from ask(Request("GET", path, query, is_json=False))
    headers = answer.headers
    begin = int(headers.get("x-offset", 0))
    return LogPart(
        answer.body.decode("utf-8", errors="replace"),
        begin,
        int(headers.get("x-next-offset", begin + len(answer.body))),
        headers.get("x-is-growing") == "1",
    )


def job_log(
    job_id: int,
    stream: str = "stdout",
    *,
    offset: int | None = None,
    tail: int | None = None,
    attempt: int | None = None,
) -> Flow[LogPart]:
    """Part of what a job printed to `stdout` or `stderr`."""
    path = f"jobs/{job_id}/{stream}"
    return (yield from log_part(path, offset=offset, tail=tail, attempt=attempt))


def pilot_log(uuid: str, *, offset: int | None = None, tail: int | None = None) -> Flow[LogPart]:
    """Part of the log of a pilot."""
    return (yield from log_part(f"pilots/{uuid}/log", offset=offset, tail=tail))


def peek(job_id: int) -> Flow[None]:
    """Ask the pilot of a job to send now what it has printed."""
    yield from ask(Request("POST", at("jobs", job_id, "peek"), json={}))


def job_outputs(job_id: int) -> Flow[Raw]:
    """Files of the attempt that ended a job."""
    found: Raw = yield from get(at("jobs", job_id, "outputs"))
    return found


def dag_file_list(dag_id: int, *, limit: int | None = None) -> Flow[list[dict[str, Any]]]:
    """Files of the workspace of a DAG."""
    return (yield from listed(at("dags", dag_id, "files"), dict, limit, {}))


def download(path: str, sink: Sink, **query: object) -> Flow[Any]:
    """Fetch a file by its path below the API; its digest if the portal tells it."""
    request = Request("GET", path, query_of(query), is_json=False, sink=sink)
    answer = yield from ask(request)
    return answer.headers.get("x-content-sha256", "")


def file_path(*parts: object) -> str:
    """Path of a file below the API; slashes of its name stay."""
    return "/".join(quote(str(part), safe="/") for part in parts)
