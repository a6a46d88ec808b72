"""Reports that could not be sent yet: kept on disk, and sent again in their order."""

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .client import (
    LONG_PAUSE_S,
    PATIENCE_S,
    SHORT_OUTAGE_S,
    SHORT_PAUSE_S,
    BadAnswer,
    Client,
    NodeFault,
    Rejected,
    Superseded,
    Unauthorised,
    Unavailable,
)
from .control import Attempt, Bell, Control

#: The server bounds what it reads. It finds out itself which outputs it did not receive.
NAMES_IN_REPORT = 100
REASON_LENGTH = 2000

_FIRST_PAUSE_S = 0.2
#: A pilot that has to go tries faster, for the few seconds that it has.
_LAST_PAUSE_S = 0.5
_ATTEMPT = re.compile(r"jobs/(\d+)/(\d+)/")

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Upload:
    """A file that is sent before a report. `output` is its name where it is an output of the job.

    When the server refuses it the report says so: in its `reason`, after `label`, and for an output
    in its `missing_outputs`.
    """

    path: str
    source: Path
    label: str
    output: str = ""


@dataclass(frozen=True)
class Rider:
    """Fields that go with a report if it is sent now, and the client whose credential they need."""

    fields: Mapping[str, Any]
    client: Client


@dataclass(frozen=True)
class _Entry:
    """One report that waits, with the files before it, all in `folder`."""

    path: str
    client: Client
    uploads: tuple[Upload, ...]
    folder: Path

    @property
    def report(self) -> Path:
        return self.folder / "report.json"


class Spool:
    """The last reports of ended jobs, so that a server that is away holds up no slot.

    Reports arrive in the order in which they were put here, each as often as it takes until one
    answer comes back: the server tells repetitions. `put` may be called by any thread.
    """

    def __init__(
        self, directory: Path, *, client: Client, control: Control, bell: Bell | None = None
    ) -> None:
        self._directory = directory
        self._client = client
        self._control = control
        self._bell = bell or control.new_bell()
        self._entries: deque[_Entry] = deque()
        self._lock = threading.Lock()
        self._number = 0
        self._is_hurried = False
        self._is_over = False
        self._thread = threading.Thread(target=self._replay, name="spool", daemon=True)
        self._faults: list[Exception] = []

    @property
    def fault(self) -> Exception | None:
        """What first kept a report from being accepted for good."""
        return self._faults[0] if self._faults else None

    def start(self) -> None:
        """Send what is put here later in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; does not wait for what is under way."""
        self._is_over = True
        self._bell.ring()

    def put(
        self,
        path: str,
        body: dict[str, Any],
        *,
        client: Client | None = None,
        uploads: Sequence[Upload] = (),
        rider: Rider | None = None,
    ) -> dict[str, Any] | None:
        """Send files and a report now, or keep them and send them when the server is back.

        Returns the server's answer, or nothing where the report is kept: then without its rider.
        Files that are kept are moved away from where they were. `client` is the one with the
        credential for this report, else the pilot's own. What the server says at once is raised:
        Superseded, Rejected, Unauthorised, BadAnswer.
        """
        speaker = client or self._client
        if not self._entries:
            try:
                return _send(speaker, path, body, uploads, rider=rider)
            except Unavailable as error:
                log.warning("%s; kept to be sent later", error)
        try:
            self._keep(path, body, speaker, uploads)
        except OSError as error:
            # No room on this disk: then the caller waits.
            log.warning("%s cannot be kept: %s", path, error)
            return _send(speaker, path, body, uploads, patience_s=PATIENCE_S)
        self._bell.ring()
        return None

    def attempts(self) -> list[Attempt]:
        """The attempts of which reports wait here: the pilot still has to do with them."""
        found = [_ATTEMPT.match(each.path) for each in tuple(self._entries)]
        return list(dict.fromkeys((int(each[1]), int(each[2])) for each in found if each))

    def hurry(self) -> None:
        """The server has just been heard: try again now."""
        if self._entries:
            self._is_hurried = True
            self._bell.ring()

    def flush(self, patience_s: float = PATIENCE_S) -> bool:
        """Wait in the main thread until nothing is left here; tell whether that came true."""
        started = self._control.clock()
        while self._entries and not self._control.is_locked_out:
            left_s = self._control.give_up_at(started, patience_s) - self._control.clock()
            if left_s <= 0:
                break
            self._control.bell.wait(left_s)
        return not self._entries

    def _keep(
        self, path: str, body: dict[str, Any], client: Client, uploads: Sequence[Upload]
    ) -> None:
        with self._lock:
            folder = self._directory / f"{self._number:08d}"
            self._number += 1
            folder.mkdir(parents=True)
            kept = tuple(
                replace(each, source=folder / str(index)) for index, each in enumerate(uploads)
            )
            entry = _Entry(path, client, kept, folder)
            try:
                _write(entry.report, json.dumps(body).encode())
                for index, each in enumerate(uploads):
                    os.replace(each.source, kept[index].source)
            except OSError:
                _undo(uploads, entry)
                raise
            self._entries.append(entry)

    def _replay(self) -> None:
        pauses = _Pauses(self._control)
        while not self._is_over:
            entry = self._entries[0] if self._entries else None
            if entry is None:
                pauses.reset()
                self._bell.wait(None)
            elif self._is_delivered(entry, pauses):
                pauses.reset()
                self._entries.popleft()
                shutil.rmtree(entry.folder, ignore_errors=True)
                self._control.bell.ring()
            else:
                self._pause(pauses.next_s())

    def _is_delivered(self, entry: _Entry, pauses: _Pauses) -> bool:
        """Try once; tell whether this report needs no further try."""
        try:
            body = json.loads(entry.report.read_bytes())
            _send(entry.client, entry.path, body, entry.uploads)
        except Unavailable as error:
            if not pauses.are_over():
                return False
            self._faults.append(error)
        except Superseded as error:
            log.warning("%s is no longer ours: %s", entry.path, error)
        except Unauthorised as error:
            # Whether it is the whole pilot that is refused, its heartbeats tell.
            log.error("%s was refused: %s", entry.path, error)
        except (Rejected, BadAnswer, OSError, ValueError) as error:
            log.error("%s was not accepted: %s", entry.path, error)
            self._faults.append(error)
        else:
            log.info("%s was sent late", entry.path)
        return True

    def _pause(self, pause_s: float) -> None:
        """Let the server rest; new reports do not cut this short."""
        was_terminated = self._control.is_terminated
        until = self._control.clock() + (min(pause_s, _LAST_PAUSE_S) if was_terminated else pause_s)
        while not self._is_over and not self._is_hurried:
            if self._control.is_terminated and not was_terminated:
                break
            left_s = until - self._control.clock()
            if left_s <= 0:
                break
            self._bell.wait(left_s)
        self._is_hurried = False


class _Pauses:
    """Between the tries of one report: they grow, and each pilot's are a little different."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.reset()

    def reset(self) -> None:
        self._since: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def are_over(self) -> bool:
        """Tell whether patience has an end now; counted from the first time this was asked."""
        now = self._control.clock()
        if self._since is None:
            self._since = now
        return now + self._pause_s > self._control.give_up_at(self._since, PATIENCE_S)

    def next_s(self) -> float:
        """The pause before the next try."""
        pause_s = self._pause_s
        lasted_s = self._control.clock() - (self._since or 0.0)
        limit_s = SHORT_PAUSE_S if lasted_s < SHORT_OUTAGE_S else LONG_PAUSE_S
        self._pause_s = min(pause_s * 2, limit_s) * random.uniform(0.7, 1.0)
        return pause_s


def _send(
    client: Client,
    path: str,
    body: dict[str, Any],
    uploads: Sequence[Upload],
    *,
    patience_s: float = 0.0,
    rider: Rider | None = None,
) -> dict[str, Any]:
    """Send files and report, each once where there is no patience; return the last answer."""
    refused: list[tuple[Upload, str]] = []
    for each in uploads:
        try:
            client.upload(each.path, each.source, patience_s=patience_s)
        except Superseded:
            raise
        except (Rejected, NodeFault) as error:
            refused.append((each, f"{each.label} was not stored: {error}"))
    report = _with_refused(body, refused)
    if rider is not None:
        return rider.client.call(path, {**report, **rider.fields}, patience_s=patience_s)
    return client.call(path, report, patience_s=patience_s)


def _with_refused(body: dict[str, Any], refused: Sequence[tuple[Upload, str]]) -> dict[str, Any]:
    """The report with what became of the files before it."""
    if not refused:
        return body
    reasons = [body.get("reason", ""), *(why for _, why in refused)]
    missing = [*body.get("missing_outputs", ()), *(each.output for each, _ in refused)]
    return {
        **body,
        "reason": "; ".join(filter(None, reasons))[:REASON_LENGTH],
        "missing_outputs": list(filter(None, missing))[:NAMES_IN_REPORT],
    }


def _undo(uploads: Sequence[Upload], entry: _Entry) -> None:
    """Put files back that were moved already: they are sent from where they were."""
    for index, each in enumerate(uploads):
        with contextlib.suppress(OSError):
            os.replace(entry.uploads[index].source, each.source)
    shutil.rmtree(entry.folder, ignore_errors=True)


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
