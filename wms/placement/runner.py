"""Placement service: takes due placement requests and carries out their attempts.

Files are moved by modules; space is allocated and released here, with the end of the attempt.

While an attempt runs, it renews the attempt's lease, and stops at the time limit or when others
have ended the attempt.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from wms.core.errors import Conflict, PilotageError
from wms.core.loops import wake
from wms.placement import allocations
from wms.placement import operations as services
from wms.placement.addresses import scheme_of, with_scheme
from wms.placement.catalogue.models import LogicalFile
from wms.placement.catalogue.names import is_logical
from wms.placement.catalogue.operations import Content
from wms.placement.conf import PlacementConf, placement_conf
from wms.placement.credentials import credential_for
from wms.placement.models import PlacementRequest
from wms.placement.modules import carry_out
from wms.placement.modules.protocol import (
    FAILED,
    TIME_IS_OVER,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.operations import Started
from wms.placement.request_ad import Checksums
from wms.placement.states import RequestKind
from wms.placement.storages.selectors import storage_for_space
from wms.placement.submission import PLACEMENT_TASK

log = structlog.get_logger(__name__)
#: A worker that is to stop must not go on taking requests: after so long another message does.
TAKING_S: Final = 10.0
_PULSE_S = 2.0


class Superseded(Exception):
    """The attempt was ended by others, and its result does not count."""


def run_due() -> int:
    """Carry out attempts that are due, one after the other; the number of attempts."""
    conf, deadline, count = placement_conf(), time.monotonic() + TAKING_S, 0
    while (started := services.take_request(timezone.now())) is not None:
        if count == 0:
            _wake_another()
        run_attempt(started, conf)
        count += 1
        if time.monotonic() > deadline:
            _wake_another()
            break
    return count


def _wake_another() -> None:
    if services.due_requests(timezone.now()):
        wake(PLACEMENT_TASK)


class AttemptHeartbeat:
    """Heartbeat of an attempt: renews its lease, and ends one that takes too long."""

    def __init__(self, started: Started, limit_s: float) -> None:
        self._started, self._limit_s = started, limit_s
        now = time.monotonic()
        self._next, self._deadline = now + _PULSE_S, now + limit_s

    def __call__(self) -> None:
        now = time.monotonic()
        if now > self._deadline:
            raise ModuleFailed(TIME_IS_OVER, f"it took more than {self._limit_s:g} s")
        if now < self._next:
            return
        self._next = now + _PULSE_S
        try:
            lives = services.renew_lease(self._started, now=timezone.now())
        except (OperationalError, InterfaceError):
            # The database is away; the lease lasts longer than a restart.
            connection.close()
            return
        if not lives:
            raise Superseded


def run_attempt(started: Started, conf: PlacementConf) -> None:
    """Carry out one attempt and write its end."""
    request = PlacementRequest.objects.get(pk=started.request_id)
    kind = RequestKind(request.kind)
    if kind in (RequestKind.ALLOCATE, RequestKind.RELEASE):
        _keep_space(request, started)
        return
    if started.resolved.refusal:
        _end(started, FAILED, started.resolved.refusal)
        return
    try:
        placed = _carry_out(request, kind, started, conf)
    except Superseded:
        log.info("placement_superseded", request=started.request_id, attempt=started.number)
    except ModuleFailed as error:
        _end(started, error.exit_code, error.message)
    except Exception as error:
        _end(started, FAILED, f"{type(error).__name__}: {error}")
        raise
    else:
        _end(started, 0, placed=placed)


def _carry_out(
    request: PlacementRequest, kind: RequestKind, started: Started, conf: PlacementConf
) -> TransferResult:
    """Do what is asked for; of a logical name remove replica by replica. Raises ModuleFailed."""
    task = _task(request, started, conf)
    if kind is not RequestKind.REMOVE or not is_logical(request.source_url):
        return carry_out(kind, (started.source_scheme, started.destination_scheme), task)
    for each in started.resolved.removals:
        carry_out(kind, (scheme_of(each.url), ""), replace(task, source_url=each.url))
    return TransferResult(None)


def _keep_space(request: PlacementRequest, started: Started) -> None:
    """Allocate or release space; what was done counts only with the end of the attempt."""
    now = timezone.now()
    try:
        with transaction.atomic():
            if request.kind == RequestKind.ALLOCATE:
                allocations.allocate(request, storage_for_space(request.host), now=now)
            else:
                allocations.release(request, now=now)
            if not _end(started, 0):
                raise Superseded
    except Superseded:
        log.info("placement_superseded", request=started.request_id, attempt=started.number)
    except PilotageError as error:
        _end(started, FAILED, str(error))


def _task(request: PlacementRequest, started: Started, conf: PlacementConf) -> TransferTask:
    resolved = started.resolved
    return TransferTask(
        request_id=request.pk,
        source_url=with_scheme(resolved.source_url, started.source_scheme),
        destination_url=with_scheme(resolved.destination_url, started.destination_scheme),
        arguments=request.arguments,
        workspace_id=request.workspace_id,
        directory=request.directory,
        checksums=_checksums(request, resolved.file),
        expected_bytes=_expected_bytes(request, resolved.file),
        conf=conf,
        pulse=AttemptHeartbeat(started, conf.limit_s),
        hold=partial(_hold, request, started),
        credential=partial(credential_for, request.owner_id),
        is_last=started.number >= request.max_attempts,
    )


def _checksums(request: PlacementRequest, file: LogicalFile | None) -> Checksums:
    """Facts of the file, as the request tells them, and else the catalogue."""
    return Checksums(
        request.expected_sha256 or (file.sha256 if file else ""),
        request.expected_md5 or (file.md5 if file else ""),
        request.expected_adler32 or (file.adler32 if file else ""),
    )


def _expected_bytes(request: PlacementRequest, file: LogicalFile | None) -> int | None:
    if request.expected_bytes is None and file is not None:
        return file.size_bytes
    return request.expected_bytes


def _hold(
    request: PlacementRequest, started: Started, size_bytes: int | None, most_bytes: int
) -> int:
    """Bytes that the file may have: what its allocation has left, if it names one."""
    if not request.allocation_name:
        return most_bytes
    try:
        return allocations.hold(request, started.lease, size_bytes, now=timezone.now())
    except PilotageError as error:
        raise ModuleFailed(FAILED, str(error)) from None


def _end(
    started: Started, exit_code: int, message: str = "", placed: TransferResult | None = None
) -> bool:
    """Write the end of the attempt; False where others have."""
    end = partial(services.end_attempt, started.request_id, lease=started.lease)
    if placed is None:
        return end(exit_code=exit_code, message=message, now=timezone.now())
    content = None
    if placed.size_bytes is not None and placed.sha256:
        content = Content(placed.size_bytes, placed.sha256)
    try:
        return end(
            exit_code=exit_code,
            size_bytes=placed.size_bytes,
            contents=placed.contents,
            removed=placed.removed,
            content=content,
            taken_out=[each.replica_id for each in started.resolved.removals],
            now=timezone.now(),
        )
    except Conflict as error:
        return end(exit_code=FAILED, message=str(error), now=timezone.now())
