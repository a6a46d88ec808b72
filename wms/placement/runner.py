"""Placement service: takes due placement requests and carries out their attempts.

Files are moved by modules; space is allocated and released here, with the end of the attempt.
Small files are granted several at a time: their statements, connections and folders' entries serve
all of them. While an attempt runs, it renews the leases of all that were granted with it, and stops
at the time limit or when others have ended the attempt. One that takes longer than small files do
gives those back that were to come after it.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from wms.core.database.permanent_errors import PERMANENT_ERRORS, told
from wms.core.errors import Conflict, PilotageError
from wms.core.loops import wake
from wms.placement import allocations, grants, reservations
from wms.placement import operations as services
from wms.placement.addresses import scheme_of, with_scheme
from wms.placement.beginnings import Started
from wms.placement.catalogue.models import LogicalFile
from wms.placement.catalogue.names import is_logical
from wms.placement.catalogue.operations import Content
from wms.placement.conf import PlacementConf, placement_conf
from wms.placement.credentials import credential_for
from wms.placement.models import PlacementRequest
from wms.placement.modules import carry_out
from wms.placement.modules.kept import FoldersToSync, KeptConnections
from wms.placement.modules.protocol import (
    FAILED,
    TIME_IS_OVER,
    ModuleFailed,
    TransferResult,
    TransferTask,
)
from wms.placement.request_ad import Checksums
from wms.placement.states import RequestKind
from wms.placement.storages.selectors import storage_for_space
from wms.placement.submission import PLACEMENT_TASK

log = structlog.get_logger(__name__)
#: A worker that is to stop must not go on taking requests: after so long another message does.
TAKING_S: Final = 10.0
_PULSE_S = 2.0
#: So many small files are granted at once.
_MOST_AT_ONCE: Final = 32
#: Before an attempt begins, its lease is no older.
_RENEWED_S: Final = 1.0
#: An attempt that takes longer is no small file's: what was granted with it is given back.
_LONG_S: Final = 1.0
#: So long the end of an attempt may wait to be written with others.
_ENDS_S: Final = 0.5


class Superseded(Exception):
    """The attempt was ended by others, and its result does not count."""


def run_due() -> int:
    """Carry out attempts that are due, one after the other; the number of attempts."""
    conf, deadline, count, most = placement_conf(), time.monotonic() + TAKING_S, 0, 1
    while granted := services.take_requests(timezone.now(), most=most):
        if count == 0:
            _wake_another()
        began_s = time.monotonic()
        done = Grant(granted, conf).run()
        count += done
        # So many that others can take what is left, should one of them be a large file.
        is_fast = time.monotonic() - began_s < _ENDS_S and done == len(granted)
        most = min(2 * most, _MOST_AT_ONCE) if is_fast else max(1, most // 4)
        if time.monotonic() > deadline:
            _wake_another()
            break
    return count


def _wake_another() -> None:
    if services.due_requests(timezone.now()):
        wake(PLACEMENT_TASK)


class Grant:
    """Attempts that were granted together, one after the other."""

    def __init__(self, granted: Sequence[Started], conf: PlacementConf) -> None:
        self._waiting = deque(granted)
        self._conf = conf
        self._running: Started | None = None
        self._done: list[grants.Success] = []
        self._written_s = self._renewed_s = time.monotonic()
        self._kept = KeptConnections()
        self._folders = FoldersToSync()
        # Of one owner: they are of one lane.
        self._credential = cache(partial(credential_for, granted[0].request.owner_id))

    def run(self) -> int:
        """Carry out the attempts; the number of those that were, the others were given back."""
        count = 0
        try:
            while self._next_lives():
                self._running = self._waiting.popleft()
                began_s = time.monotonic()
                self._run(self._running)
                count += 1
                if time.monotonic() - began_s > _LONG_S:
                    self._give_back()
                if time.monotonic() - self._written_s > _ENDS_S:
                    self._write_ends()
        finally:
            self._kept.close()
            try:
                self._write_ends()
            finally:
                self._folders.forget()
                self._give_back()
        return count

    def _next_lives(self) -> bool:
        """Whether there is another attempt to begin, none that others ended a while ago."""
        if self._waiting and time.monotonic() - self._renewed_s > _RENEWED_S:
            self._renew()
        return bool(self._waiting)

    def _run(self, started: Started) -> None:
        """Carry out one attempt and write its end, or note it for when others are written."""
        kind = RequestKind(started.request.kind)
        if kind in (RequestKind.ALLOCATE, RequestKind.RELEASE):
            self._keep_space(started.request, started)
            return
        if started.resolved.refusal:
            _end(started, FAILED, started.resolved.refusal)
            return
        began_at = timezone.now()
        try:
            placed = self._carry_out(kind, started)
        except Superseded:
            log.info("placement_superseded", request=started.request_id, attempt=started.number)
        except ModuleFailed as error:
            _end(started, error.exit_code, error.message)
        except Exception as error:
            _end(started, FAILED, f"{type(error).__name__}: {error}")
            raise
        else:
            self._succeeded(grants.Success(started, placed, began_at, timezone.now()))

    def _carry_out(self, kind: RequestKind, started: Started) -> TransferResult:
        """Do what is asked for; of a logical name remove replica by replica.

        Raises ModuleFailed.
        """
        task = self._task(started)
        if kind is not RequestKind.REMOVE or not is_logical(started.request.source_url):
            return carry_out(kind, (started.source_scheme, started.destination_scheme), task)
        for each in started.resolved.removals:
            carry_out(kind, (scheme_of(each.url), ""), replace(task, source_url=each.url))
        return TransferResult(None)

    def _task(self, started: Started) -> TransferTask:
        request, resolved = started.request, started.resolved
        return TransferTask(
            request_id=request.pk,
            source_url=with_scheme(resolved.source_url, started.source_scheme),
            destination_url=with_scheme(resolved.destination_url, started.destination_scheme),
            arguments=request.arguments,
            workspace_id=request.workspace_id,
            directory=request.directory,
            checksums=_checksums(request, resolved.file),
            expected_bytes=_expected_bytes(request, resolved.file),
            conf=self._conf,
            pulse=AttemptHeartbeat(self._conf.limit_s, self._is_alive, self._make_way),
            hold=partial(_hold, request, started),
            credential=partial(self._credential, limited_to=request.workspace.limited_to),
            is_last=started.number >= request.max_attempts,
            attempt_number=started.number,
            needs_sha256=is_logical(request.destination_url),
            kept=self._kept,
            folders=self._folders,
        )

    def _keep_space(self, request: PlacementRequest, started: Started) -> None:
        """Allocate or release space; what was done counts only with the end of the attempt.

        Where a program reserves space of the storage's server, it is asked before if there is room.
        """
        try:
            if request.kind == RequestKind.ALLOCATE:
                self._allocate(request, started)
            else:
                self._release(request, started)
        except Superseded:
            log.info("placement_superseded", request=started.request_id, attempt=started.number)
        except allocations.NoRoomYet as error:
            jitter = random.uniform(-1, 1)
            grants.put_off(started, reason=str(error), now=timezone.now(), jitter=jitter)
        except ModuleFailed as error:
            _end(started, error.exit_code, error.message)
        except (PilotageError, OSError) as error:
            _end(started, FAILED, str(error))

    def _allocate(self, request: PlacementRequest, started: Started) -> None:
        storage = storage_for_space(request.host)
        task = self._task(started)
        allocations.expire_allocations(timezone.now())
        allocations.require_room(request, storage, now=timezone.now())
        kept = reservations.reserve(request, storage, task)
        try:
            with transaction.atomic():
                made = allocations.allocate(request, storage, now=timezone.now())
                reservations.note(made, kept)
                if not _end(started, 0):
                    raise Superseded
        except (OperationalError, InterfaceError):
            # It may be stored or not: if not, the row of the ask is there, and the service asks.
            raise
        except BaseException:
            # Also where others have ended the attempt: nobody else knows of it.
            pulse = AttemptHeartbeat(self._conf.limit_s, lambda: self._is_alive() or True)
            reservations.give_up(kept, replace(task, pulse=pulse))
            raise

    def _release(self, request: PlacementRequest, started: Started) -> None:
        named = allocations.named_by(request, now=timezone.now())
        reservations.give_back(named, self._task(started))
        with transaction.atomic():
            allocations.release(request, now=timezone.now())
            if not _end(started, 0):
                raise Superseded
            allocations.look_again(timezone.now())

    def _succeeded(self, success: grants.Success) -> None:
        started, placed = success.started, success.result
        urls = (started.request.source_url, started.request.destination_url)
        if placed.removed or any(map(is_logical, urls)):
            if self._are_on_disk(started):
                _end(started, 0, placed=placed)
        else:
            self._done.append(success)

    def _is_alive(self) -> bool:
        """Whether the attempt that runs still counts; renews the leases of all."""
        running = self._running
        assert running is not None
        return running.request_id in self._renew(running)

    def _renew(self, *running: Started) -> set[int]:
        """Renew the leases of all, and forget those to come that others have ended."""
        self._renewed_s = time.monotonic()
        done = [each.started for each in self._done]
        alive = services.renew_leases([*running, *done, *self._waiting], now=timezone.now())
        self._waiting = deque(each for each in self._waiting if each.request_id in alive)
        return alive

    def _make_way(self) -> None:
        """Let nothing wait for an attempt that takes long."""
        self._write_ends()
        self._give_back()

    def _give_back(self) -> None:
        if self._waiting:
            grants.give_back(self._waiting)
            self._waiting.clear()
            wake(PLACEMENT_TASK)

    def _write_ends(self) -> None:
        self._written_s = time.monotonic()
        if self._done and self._are_on_disk():
            try:
                grants.end_successes(self._done, now=timezone.now())
            except PERMANENT_ERRORS:
                log.exception("placement_ends_refused", attempts=len(self._done))
                for each in self._done:
                    _end_alone(each)
        self._done = []

    def _are_on_disk(self, *further: Started) -> bool:
        """Whether the folders of all that was placed are; if not, these attempts have failed."""
        try:
            self._folders.sync()
        except OSError as error:
            told = f"the folder could not be written to the disk: {error.strerror or error}"
            for each in (*further, *(each.started for each in self._done)):
                _end(each, FAILED, told)
            self._done = []
            return False
        return True


def _end_alone(success: grants.Success) -> None:
    """Write one end, so that what the database refuses of it spoils no others."""
    try:
        grants.end_successes([success], now=timezone.now())
    except PERMANENT_ERRORS as error:
        _end(success.started, FAILED, told(error))


class AttemptHeartbeat:
    """Heartbeat of an attempt: keeps its lease, and ends one that takes too long or is over.

    One that goes on for long has others make way for it.
    """

    def __init__(
        self,
        limit_s: float,
        is_alive: Callable[[], bool],
        make_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._limit_s, self._is_alive, self._make_way = limit_s, is_alive, make_way
        now = time.monotonic()
        self._next, self._deadline = now + min(_PULSE_S, _LONG_S), now + limit_s

    def __call__(self) -> None:
        now = time.monotonic()
        if now > self._deadline:
            raise ModuleFailed(TIME_IS_OVER, f"it took more than {self._limit_s:g} s")
        if now < self._next:
            return
        self._next = now + _PULSE_S
        try:
            self._make_way()
            lives = self._is_alive()
        except (OperationalError, InterfaceError):
            # The database is away; the lease lasts longer than a restart.
            connection.close()
            return
        if not lives:
            raise Superseded


def run_attempt(started: Started, conf: PlacementConf) -> None:
    """Carry out one attempt and write its end."""
    Grant([started], conf).run()


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
            note=placed.note,
            contents=placed.contents,
            removed=placed.removed,
            content=content,
            taken_out=[each.replica_id for each in started.resolved.removals],
            now=timezone.now(),
        )
    except Conflict as error:
        return end(exit_code=FAILED, message=str(error), now=timezone.now())
