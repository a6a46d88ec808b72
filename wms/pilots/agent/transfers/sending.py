"""Sends of files by HTTP, in a few tries, each of the whole file."""

from __future__ import annotations

import http.client
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .connections import Check, Connection, parsed
from .fetching import PAUSES_S, TRIES, is_for_another_try
from .rules import Source, TransferBroken, TransferRefused, TransferRules, without_secrets

_GOOD = frozenset({200, 201, 204})
_CHUNK = 2**20

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Sender:
    """Sends files of one job. `check` raises an exception once the job is not wanted any more.

    `pause` waits so many seconds, `moved` is told how many bytes have gone.
    """

    rules: TransferRules
    check: Check
    pause: Callable[[float], None]
    moved: Callable[[int], None]

    def send(self, file: Path, target: Source) -> None:
        """Have the file at its target. Raises TransferRefused and TransferBroken, and OSError."""
        if file.stat().st_size > self.rules.file_bytes:
            raise TransferRefused(
                f"it is larger than the {self.rules.file_bytes} bytes that it may be"
            )
        fault = ""
        for number in range(TRIES):
            if number:
                self.pause(PAUSES_S[number - 1])
            try:
                self._put(file, target)
                return
            except TransferBroken as error:
                fault = str(error)
            log.warning("%s: %s", without_secrets(target.url), fault)
        raise TransferBroken(f"{fault} ({TRIES} tries)")

    def _put(self, file: Path, target: Source) -> None:
        until = time.monotonic() + self.rules.limit_s

        def check() -> None:
            self.check()
            if time.monotonic() > until:
                raise TransferBroken(f"it was not over within {self.rules.limit_s:g} s")

        parts = parsed(target.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with Connection(parts, self.rules, check) as connection:
            try:
                answer = self._answer(connection, path, file, target.authorization)
                answer.read(_CHUNK)
            except (http.client.HTTPException, ValueError) as error:
                raise TransferBroken(f"the answer is none of HTTP: {error!r}") from error
        if answer.status in _GOOD:
            return
        told = f"{parts.hostname} answered {answer.status}: {answer.reason}"[:300]
        if is_for_another_try(answer.status):
            raise TransferBroken(told)
        raise TransferRefused(told)

    def _answer(
        self, connection: Connection, path: str, file: Path, authorization: str
    ) -> http.client.HTTPResponse:
        size = file.stat().st_size
        connection.putrequest("PUT", path, skip_accept_encoding=True)
        for name, value in _headers(size, authorization).items():
            connection.putheader(name, value)
        connection.endheaders()
        with file.open("rb") as content:
            try:
                while True:
                    piece = content.read(_CHUNK)
                    if not piece:
                        break
                    connection.send(piece)
                    self.moved(len(piece))
            except TransferBroken as error:
                # A server that refuses a file answers before it has read all of it.
                try:
                    return connection.getresponse()
                except (TransferBroken, http.client.HTTPException):
                    raise error from None
        return connection.getresponse()


def _headers(size: int, authorization: str) -> Mapping[str, str]:
    headers = {
        "User-Agent": "Pilotage",
        "Content-Type": "application/octet-stream",
        "Content-Length": str(size),
    }
    return {**headers, "Authorization": authorization} if authorization else headers
