"""Views of the pilot API: registration, heartbeat, claim, files, reports, output, log, good-bye."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO, cast
from uuid import UUID

import structlog
from django.db import DatabaseError
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
)
from django.utils import timezone

from portal.metrics.counts import count_claim, count_heartbeat
from portal.pilot_api import messages
from portal.pilot_api.bodies import MAX_AMOUNT, Fields, read_body
from portal.pilot_api.connections import is_connected
from portal.pilot_api.endpoint import credential_of, endpoint, for_attempt, for_pilot
from portal.shared.working_places import resting
from wms.core.conf import conf
from wms.core.errors import InvalidInput, NotAuthenticated, NotFound, PilotageError, TooLarge
from wms.jobs.attempts import ending, progress
from wms.jobs.attempts.checkpoints import keep_checkpoint
from wms.jobs.attempts.guard import live_attempt, report_guard
from wms.jobs.binding.late_values import recall
from wms.jobs.content import blobs, inputs, links
from wms.jobs.directives import Directives, announced_as
from wms.jobs.models import Attempt, AttemptFile, Stream
from wms.jobs.output import streams
from wms.pilots.models import Pilot
from wms.pilots.protocol import claims, logs, registration
from wms.pilots.protocol.heartbeats import Credential, record_heartbeat
from wms.pilots.protocol.held_claims import claim_and_wait

log = structlog.get_logger(__name__)

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TOKEN = r"[0-9a-f]{64}"


@endpoint("POST")
def register(request: HttpRequest) -> HttpResponse:
    """Registration of a pilot by its one-time secret and the token that it has chosen."""
    body = read_body(request)
    token = body.text("token", pattern=_TOKEN)
    secret = body.text("secret", max_length=256)
    now = timezone.now()
    node = messages.read_node(body.object("node"), now)
    try:
        uuid = UUID(body.text("pilot", max_length=36))
    except ValueError as error:
        raise NotAuthenticated from error
    terms = registration.register_pilot(uuid, secret=secret, token=token, node=node, now=now)
    return JsonResponse(asdict(terms))


@endpoint("POST")
def heartbeat(request: HttpRequest) -> HttpResponse:
    """Heartbeat of a pilot with its attempts; the answer carries commands."""
    uuid, token = credential_of(request)
    now = timezone.now()
    try:
        beat = messages.read_beat(read_body(request), now)
    except PilotageError:
        # The credential is looked at with the beat; without a good one nobody is told of faults.
        registration.authenticate_pilot(uuid, token, now=now)
        raise
    credential = Credential(uuid, registration.secret_digest(token))
    answer = record_heartbeat(credential, beat, now=now)
    told = messages.heartbeat_json(answer)
    count_heartbeat(has_commands=bool(told["commands"]))
    return JsonResponse(told)


@endpoint("POST")
@for_pilot
def claim(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """Claim of a job by a pilot, which may wait for one."""
    claim_request = messages.read_claim(read_body(request), pilot)
    if not claim_request.wait_s:
        return JsonResponse(messages.claim_json(_claimed(pilot, claim_request)))
    answer, is_held = claim_and_wait(
        pilot,
        claim_request.resource,
        claim_key=claim_request.key,
        unreported=claim_request.unreported,
        wait_s=claim_request.wait_s,
        is_there=partial(is_connected, request),
        resting=resting,
    )
    count_claim(has_job=answer.work is not None)
    return JsonResponse({**messages.claim_json(answer), "is_held": is_held})


def _claimed(pilot: Pilot, claim_request: messages.Claim) -> claims.ClaimAnswer:
    answer = claims.claim_job(
        pilot,
        claim_request.resource,
        claim_key=claim_request.key,
        unreported=claim_request.unreported,
        now=timezone.now(),
    )
    count_claim(has_job=answer.work is not None)
    return answer


@endpoint("GET")
@for_attempt
def input_file(
    request: HttpRequest, pilot: Pilot, *, job: int, attempt: int, path: str
) -> HttpResponseBase:
    """One file of the input sandbox of a live attempt, or a link to it for who can follow one."""
    live = live_attempt(job, attempt, pilot_id=pilot.pk)
    blob = inputs.input_blobs(live.job).get(path)
    if blob is None:
        raise NotFound(f"Job {job} has no input {path!r}.")
    link = links.link_to_read(blob) if request.headers.get("Pilotage-Links") == "1" else None
    if link is not None:
        return HttpResponse(
            status=HTTPStatus.TEMPORARY_REDIRECT,
            headers={"Location": link.url, "Cache-Control": "no-store"},
        )
    return FileResponse(
        blobs.open_blob(blob.sha256), content_type="application/octet-stream", filename="input"
    )


@endpoint("PUT")
@for_attempt
def sent_file(
    request: HttpRequest, pilot: Pilot, *, job: int, attempt: int, kind: str, path: str
) -> HttpResponse:
    """Upload of an output file of a live attempt; its content is stored piece by piece."""
    actor = registration.pilot_actor(pilot)
    with report_guard(job, attempt, "file", pilot_id=pilot.pk, actor=actor):
        live = live_attempt(job, attempt, pilot_id=pilot.pk)
    _check_place(live, kind, path)
    sha256 = request.headers.get("X-Content-SHA256", "")
    if not _SHA256.fullmatch(sha256):
        raise InvalidInput.of("needs 64 hexadecimal digits", field="X-Content-SHA256")
    limit_bytes = conf().max_upload_bytes
    announced = request.headers.get("Content-Length", "")
    if announced.isdecimal():
        _check_size(int(announced))
    blob = blobs.store_stream(
        cast(BinaryIO, request), limit_bytes=limit_bytes, expected_sha256=sha256
    )
    with report_guard(job, attempt, "file", pilot_id=pilot.pk, actor=actor):
        progress.add_attempt_file(live, kind=kind, path=path, blob=blob)
    return JsonResponse({"sha256": blob.sha256, "size_bytes": blob.size_bytes})


@endpoint("POST")
@for_attempt
def link(
    request: HttpRequest, pilot: Pilot, *, job: int, attempt: int, kind: str, path: str
) -> HttpResponse:
    """Link by which a file of a live attempt is sent to the store; then the word that it was sent.

    Without a link the file is sent here (`sent_file`).
    """
    body = read_body(request)
    sha256 = body.text("sha256", pattern=_SHA256.pattern)
    size_bytes = body.integer("size_bytes", maximum=MAX_AMOUNT)
    is_sent = body.flag("is_sent")
    actor = registration.pilot_actor(pilot)
    with report_guard(job, attempt, "file", pilot_id=pilot.pk, actor=actor):
        live = live_attempt(job, attempt, pilot_id=pilot.pk)
    _check_place(live, kind, path)
    _check_size(size_bytes)
    if not is_sent:
        given = links.link_to_send(live.pk, sha256=sha256, size_bytes=size_bytes)
        told = None if given is None else {"url": given.url, "headers": given.headers}
        return JsonResponse({"link": told}, headers={"Cache-Control": "no-store"})
    blob = links.take_sent(live.pk, sha256=sha256, size_bytes=size_bytes)
    if blob is not None:
        with report_guard(job, attempt, "file", pilot_id=pilot.pk, actor=actor):
            progress.add_attempt_file(live, kind=kind, path=path, blob=blob)
    return JsonResponse({"is_stored": blob is not None})


def _check_size(size_bytes: int) -> None:
    limit_bytes = conf().max_upload_bytes
    if size_bytes > limit_bytes:
        raise TooLarge(f"The file is larger than {limit_bytes} bytes.")


def _check_place(attempt: Attempt, kind: str, path: str) -> None:
    """Refuse what the job has not announced: it would land in the workspace of its DAG."""
    if kind not in AttemptFile.Kind.values:
        raise InvalidInput.of(f"unknown kind of file {kind!r}", field="kind")
    job = attempt.job
    recall(job, attempt)
    expected = {
        AttemptFile.Kind.OUTPUT.value: job.output_files,
        AttemptFile.Kind.NEW_CHECKPOINT.value: Directives.of(job.directives).checkpoint_files,
    }
    if not announced_as(path, expected.get(kind, [kind])):
        raise InvalidInput.of(f"{path!r} is not a {kind} file of the job", field="path")


@endpoint("POST")
@for_attempt
def report(request: HttpRequest, pilot: Pilot, *, job: int, attempt: int) -> HttpResponse:
    """Report of an attempt: started, checkpointed, ended, or not run.

    The report of an end may carry the pilot's next claim. It is read before anything is changed,
    and made after the report has been committed.
    """
    body = read_body(request)
    event = body.choice("event", "started", "checkpointed", "ended", "not_run")
    actor = registration.pilot_actor(pilot)
    now = timezone.now()
    if event == "ended":
        end = messages.read_end(body)
        claim_request = _read_next_claim(request, body, pilot)
        ending.end_attempt(job, attempt, pilot_id=pilot.pk, end=end, actor=actor, now=now)
        return JsonResponse({"accepted": True, **_next_claim(pilot, claim_request)})
    if event == "started":
        progress.start_attempt(job, attempt, pilot_id=pilot.pk, actor=actor)
    elif event == "checkpointed":
        files = body.texts("files")
        keep_checkpoint(job, attempt, pilot_id=pilot.pk, files=files, actor=actor)
    else:
        ending.return_job(
            job,
            attempt,
            pilot_id=pilot.pk,
            reason=body.text("reason", pattern=".+"),
            actor=actor,
            is_preempted=messages.read_stopped_by(body) == Attempt.StoppedBy.PREEMPTION,
            failed_transfer=messages.read_failed_transfer(body),
        )
    return JsonResponse({"accepted": True})


def _read_next_claim(request: HttpRequest, body: Fields, pilot: Pilot) -> messages.Claim | None:
    """The claim in a report; the token of the attempt, good for the report, is not for a claim."""
    if not body.has("claim"):
        return None
    _, token = credential_of(request)
    registration.require_own_token(pilot, token)
    return messages.read_claim(body.object("claim"), pilot)


def _next_claim(pilot: Pilot, claim_request: messages.Claim | None) -> dict[str, Any]:
    """The claim's answer beside that of the report, which stands whatever becomes of the claim."""
    if claim_request is None:
        return {}
    try:
        answer = _claimed(pilot, claim_request)
    except (PilotageError, DatabaseError) as error:
        log.warning("claim_in_report_failed", pilot=str(pilot.uuid), error=str(error))
        return {"claim": None}
    return {"claim": messages.claim_json(answer)}


@endpoint("POST")
@for_attempt
def stream(
    request: HttpRequest, pilot: Pilot, *, job: int, attempt: int, kind: str
) -> HttpResponse:
    """Piece of a payload's output while it runs; with `after` not all before it comes."""
    if kind not in Stream.Kind.values:
        raise NotFound(f"There is no stream {kind!r}.")
    size = streams.append_to_stream(
        job,
        attempt,
        pilot_id=pilot.pk,
        kind=kind,
        offset=_place(request, "offset"),
        after=_place(request, "after") if "after" in request.GET else None,
        content=_read_piece(request),
        now=timezone.now(),
    )
    return JsonResponse({"size": size})


@endpoint("POST")
@for_pilot
def pilot_log(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """Piece of the pilot's own log."""
    size = logs.append_to_log(
        pilot.pk,
        offset=_place(request, "offset"),
        content=_read_piece(request),
        now=timezone.now(),
    )
    return JsonResponse({"size": size})


def _place(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise InvalidInput.of("must be a number of bytes", field=name)
    return int(text)


def _read_piece(request: HttpRequest) -> bytes:
    content: bytes = request.read(streams.MAX_PIECE_BYTES + 1)
    if len(content) > streams.MAX_PIECE_BYTES:
        raise TooLarge(f"A piece has no more than {streams.MAX_PIECE_BYTES} bytes.")
    return content


@endpoint("POST")
@for_pilot
def end(request: HttpRequest, pilot: Pilot) -> HttpResponse:
    """Good-bye of a pilot."""
    body = read_body(request)
    registration.end_pilot(
        pilot,
        end=body.choice("reason", *registration.ENDS),
        detail=body.text("detail"),
        totals=messages.read_totals(body),
        now=timezone.now(),
    )
    return JsonResponse({})
