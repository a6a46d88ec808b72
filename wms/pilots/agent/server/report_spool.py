"""Spool of reports on ended jobs: kept on disk, and sent again until the server answers.

Also the attempts whose reports wait here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import re
import shutil
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..control import Attempt, Control, Waker
from .client import (
    LONG_PAUSE_S,
    RETRY_S,
    SHORT_OUTAGE_S,
    SHORT_PAUSE_S,
    BadAnswer,
    Client,
    Rejected,
    Superseded,
    Unauthorised,
    Unavailable,
)
from .report_delivery import AttachedFields, ReportDelivery, Upload, is_end_report

_FIRST_PAUSE_S = 0.2
#: A pilot that has to go tries faster, for the few seconds that it has.
_LAST_PAUSE_S = 0.5
_ATTEMPT = re.compile(r"jobs/(\d+)/(\d+)/")
_NOT_TAKEN = (Rejected, BadAnswer, OSError, ValueError)

log = logging.getLogger("pilot")


class ReportSpool:
    """Spool of the last reports of ended jobs, so that a server that is away holds up no slot.

    Reports of one attempt arrive in the order in which they were put here, each as often as it
    takes until one answer comes back: the server recognises repetitions. One that the server cannot
    take waits by itself and holds up no other attempt's. `put` may be called by any thread.
    """

    def __init__(
        self, directory: Path, *, client: Client, control: Control, waker: Waker | None = None
    ) -> None:
        self._directory = directory
        self._client = client
        self._control = control
        self._waker = waker or control.new_waker()
        # By attempt, in the order in which their first reports came.
        self._queues: dict[Attempt, deque[_SpooledReport]] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._is_away = False
        self._is_retry_due = False
        self._is_over = False
        self._thread = threading.Thread(target=self._replay, name="spool", daemon=True)
        self._faults: list[Exception] = []

    @property
    def fault(self) -> Exception | None:
        """First fault that kept a report from being accepted for good."""
        return self._faults[0] if self._faults else None

    def start(self) -> None:
        """Send spooled reports in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; does not wait for what is under way."""
        self._is_over = True
        self._waker.wake()

    def put(
        self,
        path: str,
        body: dict[str, Any],
        *,
        client: Client | None = None,
        uploads: Sequence[Upload] = (),
        attached: AttachedFields | None = None,
    ) -> dict[str, Any] | None:
        """Send files and a report now, or keep them and send them when the server is back.

        Returns the server's answer, or None where the report is kept: then without its attached
        fields. Files that are kept are moved away from where they were. `client` has the credential
        for this report, else the pilot's own is used. Refusals of the server are raised at once:
        Superseded, Rejected, Unauthorised, BadAnswer.
        """
        delivery = ReportDelivery(client or self._client, path, uploads)
        if not self._has_to_wait(path):
            try:
                return delivery.send(body, attached=attached)
            except Unavailable as error:
                log.warning("%s; kept to be sent later", error)
                self._is_away = not error.is_answered
        try:
            self._keep(delivery, body)
        except OSError as error:
            # No room on this disk: then the caller waits.
            log.warning("%s cannot be kept: %s", path, error)
            return delivery.send(body, retry_s=RETRY_S)
        self._waker.wake()
        return None

    def attempts(self) -> list[Attempt]:
        """Attempts of which reports wait here: the pilot still holds them."""
        with self._lock:
            return list(self._queues)

    def retry_now(self) -> None:
        """The server has just answered: if it was away, try again now."""
        if self._queues:
            self._is_retry_due = True
            self._waker.wake()

    def flush(self, retry_s: float = RETRY_S) -> bool:
        """Wait in the main thread until the spool is empty; tell whether it is."""
        started = self._control.clock()
        while self._queues and not self._control.is_locked_out:
            left_s = self._control.retry_until(started, retry_s) - self._control.clock()
            if left_s <= 0:
                break
            self._control.waker.wait(left_s)
        return not self._queues

    def _has_to_wait(self, path: str) -> bool:
        """Whether reports of this attempt wait already, or the server is away and any wait."""
        with self._lock:
            return _attempt_of(path) in self._queues or (self._is_away and bool(self._queues))

    def _keep(self, delivery: ReportDelivery, body: dict[str, Any]) -> None:
        with self._lock:
            folder = self._directory / f"{self._number:08d}"
            self._number += 1
        folder.mkdir(parents=True)
        before = delivery.uploads
        kept = [folder / str(index) for index in range(len(before))]
        entry = _SpooledReport(delivery, folder, is_end_report(body), _Backoff(self._control))
        try:
            _write(entry.report, json.dumps(body).encode())
            for index, each in enumerate(before):
                os.replace(each.source, kept[index])
        except OSError:
            _undo(before, kept)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        delivery.move(kept)
        with self._lock:
            self._queues.setdefault(_attempt_of(delivery.path), deque()).append(entry)

    def _replay(self) -> None:
        backoff = _Backoff(self._control)
        while not self._is_over:
            entry = self._next()
            if entry is None:
                backoff.reset()
                self._waker.wait(None)
                continue
            rest_s = entry.rests_until(self._control) - self._control.clock()
            if rest_s > 0:
                # New reports ring, and go first.
                self._waker.wait(rest_s)
                continue
            try:
                self._try(entry)
            except Unavailable as error:
                self._is_away = not error.is_answered
                if error.is_answered:
                    self._postpone(entry, error)
                elif backoff.is_exhausted():
                    self._drop(entry, error)
                    backoff.reset()
                else:
                    self._pause(backoff.next_s())
            else:
                self._is_away = False
                backoff.reset()

    def _next(self) -> _SpooledReport | None:
        """First report of the attempt that may be tried soonest; None when there is none."""
        with self._lock:
            heads = [queue[0] for queue in self._queues.values()]
        return min(heads, key=lambda each: each.rests_until(self._control), default=None)

    def _try(self, entry: _SpooledReport) -> None:
        """Send this report once. Raises Unavailable if it needs another try."""
        path = entry.delivery.path
        try:
            entry.delivery.send(json.loads(entry.report.read_bytes()))
        except Superseded as error:
            log.warning("%s is no longer ours: %s", path, error)
        except Unauthorised as error:
            # Whether it is the whole pilot that is refused, its heartbeats tell.
            log.error("%s was refused: %s", path, error)
        except _NOT_TAKEN as error:
            log.error("%s was not accepted: %s", path, error)
            self._faults.append(error)
        else:
            log.info("%s was sent late", path)
        self._drop(entry)

    def _postpone(self, entry: _SpooledReport, error: Unavailable) -> None:
        """Postpone a report that the server cannot take now: others go first, for some time."""
        if not entry.backoff.is_exhausted():
            entry.rest(self._control.clock())
            return
        log.error("%s was not accepted: %s", entry.delivery.path, error)
        if not entry.is_end_report or self._control.is_terminated:
            self._drop(entry, error)
            return
        try:
            entry.delivery.give_back(f"the server could not take how it ended: {error}")
        except (Superseded, Unauthorised) as refusal:
            log.warning("%s is no longer ours: %s", entry.delivery.path, refusal)
        except (Unavailable, *_NOT_TAKEN) as fault:
            self._drop(entry, fault)
            return
        self._drop(entry)

    def _drop(self, entry: _SpooledReport, fault: Exception | None = None) -> None:
        """Drop the first report of an attempt, and go on to its next."""
        if fault is not None:
            self._faults.append(fault)
        attempt = _attempt_of(entry.delivery.path)
        shutil.rmtree(entry.folder, ignore_errors=True)
        with self._lock:
            self._queues[attempt].popleft()
            if not self._queues[attempt]:
                del self._queues[attempt]
        self._control.waker.wake()

    def _pause(self, pause_s: float) -> None:
        """Pause before the next try; new reports do not cut this short."""
        was_terminated = self._control.is_terminated
        until = self._control.clock() + (min(pause_s, _LAST_PAUSE_S) if was_terminated else pause_s)
        while not self._is_over and not self._is_retry_due:
            if self._control.is_terminated and not was_terminated:
                break
            left_s = until - self._control.clock()
            if left_s <= 0:
                break
            self._waker.wait(left_s)
        self._is_retry_due = False


class _SpooledReport:
    """One spooled report, with the files before it, all in `folder`."""

    def __init__(
        self, delivery: ReportDelivery, folder: Path, is_end_report: bool, backoff: _Backoff
    ) -> None:
        self.delivery = delivery
        self.folder = folder
        self.is_end_report = is_end_report
        self.backoff = backoff
        self._rests_from = self._rest_s = 0.0

    @property
    def report(self) -> Path:
        return self.folder / "report.json"

    def rest(self, now: float) -> None:
        """Postpone the next try, longer each time."""
        self._rests_from, self._rest_s = now, self.backoff.next_s()

    def rests_until(self, control: Control) -> float:
        """Time of the next try."""
        limit_s = _LAST_PAUSE_S if control.is_terminated else self._rest_s
        return self._rests_from + min(self._rest_s, limit_s)


class _Backoff:
    """Backoff between the tries of one report: pauses grow, and vary from pilot to pilot."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.reset()

    def reset(self) -> None:
        self._since: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def is_exhausted(self) -> bool:
        """Tell whether retries end now; counted from the first time this was asked."""
        now = self._control.clock()
        if self._since is None:
            self._since = now
        return now + self._pause_s > self._control.retry_until(self._since, RETRY_S)

    def next_s(self) -> float:
        """Pause before the next try."""
        pause_s = self._pause_s
        lasted_s = self._control.clock() - (self._since or 0.0)
        limit_s = SHORT_PAUSE_S if lasted_s < SHORT_OUTAGE_S else LONG_PAUSE_S
        self._pause_s = min(pause_s * 2, limit_s) * random.uniform(0.7, 1.0)
        return pause_s


def _attempt_of(path: str) -> Attempt:
    """Attempt that a report is about, from its address."""
    match = _ATTEMPT.match(path)
    if match is None:
        raise ValueError(f"{path} is no address of an attempt")
    return int(match[1]), int(match[2])


def _undo(uploads: Sequence[Upload], moved: Sequence[Path]) -> None:
    """Move files back to where they are sent from."""
    for index, each in enumerate(uploads):
        with contextlib.suppress(OSError):
            os.replace(moved[index], each.source)


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
