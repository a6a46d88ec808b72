"""The pilot API: the only thing that a worker node ever talks to."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import BinaryIO, cast
from uuid import UUID

from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from portal.pilot_api import messages
from portal.pilot_api.bodies import read_body
from portal.pilot_api.endpoint import endpoint, for_pilot
from wms.core.conf import conf
from wms.core.errors import InvalidInput, NotAuthenticated, NotFound, TooLarge
from wms.jobs import attempts, blobs
from wms.jobs.models import Attempt, AttemptFile
from wms.pilots import services
from wms.pilots.bundle import agent_bundle
from wms.pilots.models import Pilot

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TOKEN = r"[0-9a-f]{64}"


@endpoint("GET")
def agent(request: HttpRequest) -> HttpResponse:
    """The pilot program; whoever starts it knows its hash beforehand."""
    return HttpResponse(agent_bundle().content, content_type="application/zip")


@endpoint("POST")
def register(request: HttpRequest) -> HttpResponse:
    """A pilot shows its one-time secret and the token that it has chosen."""
    body = read_body(request)
    token = body.text("token", pattern=_TOKEN)
    secret = body.text("secret", max_length=256)
    node = messages.read_node(body.object("node"))
    try:
        uuid = UUID(body.text("pilot", max_length=36))
    except ValueError as error:
        raise NotAuthenticated from error
    terms = services.register_pilot(uuid, secret=secret, token=token, node=node, now=timezone.now())
    return JsonResponse(asdict(terms))


@endpoint("POST")
@for_pilot
def heartbeat(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """The pilot lives and has these attempts; the answer carries commands."""
    body = read_body(request)
    running = messages.read_attempts(body)
    attributes = messages.read_attributes(body)
    answer = services.record_heartbeat(pilot, running, attributes=attributes, now=timezone.now())
    return JsonResponse(messages.heartbeat_json(answer))


@endpoint("POST")
@for_pilot
def claim(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """The pilot asks for a job."""
    body = read_body(request)
    claim_key = messages.read_claim_key(body)
    resource = messages.read_resource(body, pilot)
    answer = services.claim_job(pilot, resource, claim_key=claim_key, now=timezone.now())
    return JsonResponse(messages.claim_json(answer))


@endpoint("GET")
@for_pilot
def input_file(
    request: HttpRequest, pilot: Pilot, *, job: int, attempt: int, path: str
) -> FileResponse:
    """One file of the input sandbox of a live attempt."""
    live = attempts.live_attempt(job, attempt, pilot_id=pilot.pk)
    blob = attempts.input_blobs(live.job).get(path)
    if blob is None:
        raise NotFound(f"Job {job} has no input {path!r}.")
    return FileResponse(
        blobs.open_blob(blob.sha256), content_type="application/octet-stream", filename="input"
    )


@endpoint("PUT")
@for_pilot
def sent_file(
    request: HttpRequest, pilot: Pilot, *, job: int, attempt: int, kind: str, path: str
) -> HttpResponse:
    """A file that a live attempt sends back; its content goes to the store piece by piece."""
    live = attempts.live_attempt(job, attempt, pilot_id=pilot.pk)
    _check_place(live, kind, path)
    sha256 = request.headers.get("X-Content-SHA256", "")
    if not _SHA256.fullmatch(sha256):
        raise InvalidInput.of("needs 64 hexadecimal digits", field="X-Content-SHA256")
    limit_bytes = conf().max_upload_bytes
    announced = request.headers.get("Content-Length", "")
    if announced.isdecimal() and int(announced) > limit_bytes:
        raise TooLarge(f"The file is larger than {limit_bytes} bytes.")
    blob = blobs.store_stream(
        cast(BinaryIO, request), limit_bytes=limit_bytes, expected_sha256=sha256
    )
    attempts.add_attempt_file(live, kind=kind, path=path, blob=blob)
    return JsonResponse({"sha256": blob.sha256, "size_bytes": blob.size_bytes})


def _check_place(attempt: Attempt, kind: str, path: str) -> None:
    """Refuse what the job has not announced: it would land in the workspace of its DAG."""
    if kind not in AttemptFile.Kind.values:
        raise InvalidInput.of(f"unknown kind of file {kind!r}", field="kind")
    expected = attempt.job.output_files if kind == AttemptFile.Kind.OUTPUT else [kind]
    if path not in expected:
        raise InvalidInput.of(f"{path!r} is not a {kind} file of the job", field="path")


@endpoint("POST")
@for_pilot
def report(request: HttpRequest, pilot: Pilot, *, job: int, attempt: int) -> HttpResponse:
    """What became of an attempt: started, ended, or not run."""
    body = read_body(request)
    event = body.choice("event", "started", "ended", "not_run")
    actor = services.pilot_actor(pilot)
    now = timezone.now()
    if event == "started":
        attempts.start_attempt(job, attempt, pilot_id=pilot.pk, actor=actor, now=now)
    elif event == "ended":
        end = messages.read_end(body)
        attempts.end_attempt(job, attempt, pilot_id=pilot.pk, end=end, actor=actor, now=now)
    else:
        reason = body.text("reason", pattern=".+")
        attempts.return_job(job, attempt, pilot_id=pilot.pk, reason=reason, actor=actor)
    return JsonResponse({"accepted": True})


@endpoint("POST")
@for_pilot
def end(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """The pilot says good-bye."""
    body = read_body(request)
    reason = body.choice("reason", "idle", "drained", "lifetime", "terminated", "error")
    services.end_pilot(pilot, reason=reason, detail=body.text("detail"), now=timezone.now())
    return JsonResponse({})
