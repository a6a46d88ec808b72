"""Sends of files by HTTP, in a few tries, each of the whole file.

A server of WebDAV has the folders of the file's URL made where it lacks them.
"""

from __future__ import annotations

import http.client
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult

from .connections import Check, Connection, parsed
from .fetching import PAUSES_S, TRIES, is_for_another_try
from .rules import Source, TransferBroken, TransferRefused, TransferRules, without_secrets

_GOOD = frozenset({200, 201, 204})
#: Of a PUT or MKCOL: the folder above is not there; of a MKCOL: it is there itself.
_CONFLICT, _IS_THERE = 409, 405
_CHUNK = 2**20

#: Sends a request for a path, and gives its answer.
_Send = Callable[[Connection, str], http.client.HTTPResponse]

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

        def put() -> http.client.HTTPResponse:
            return self._ask(
                parts, check, lambda connection, path: self._answer(connection, path, file, target)
            )

        answer = put()
        if answer.status == _CONFLICT and self._make_folders(parts, target, check):
            answer = put()
        if answer.status in _GOOD:
            return
        _require_final(parts, answer)
        raise TransferRefused(_told(parts, answer))

    def _ask(self, parts: SplitResult, check: Check, send: _Send) -> http.client.HTTPResponse:
        """Answer to what `send` sends on a new connection, given the path."""
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with Connection(parts, self.rules, check) as connection:
            try:
                answer = send(connection, path)
                answer.read(_CHUNK)
            except (http.client.HTTPException, ValueError) as error:
                raise TransferBroken(f"the answer is none of HTTP: {error!r}") from error
        return answer

    def _make_folders(self, parts: SplitResult, target: Source, check: Check) -> bool:
        """Make the folders that lack above a file, from the first that is there; whether all are.

        What has a query may be signed for one request: nothing is made there. Raises TransferBroken
        where a server may make one later.
        """
        # Servers with folders take several slashes for one.
        words = [word for word in parts.path.split("/")[:-1] if word]
        if parts.query or not words or {".", ".."} & set(words):
            return False

        def is_made(count: int) -> bool:
            folder = parts._replace(path="/" + "/".join(words[:count]) + "/")
            answer = self._ask(folder, check, partial(_make_folder, target.authorization))
            _require_final(folder, answer)
            # Somebody else may have made it.
            return answer.status in (201, _IS_THERE)

        lowest = next((count for count in range(len(words), 0, -1) if is_made(count)), 0)
        return lowest > 0 and all(is_made(count) for count in range(lowest + 1, len(words) + 1))

    def _answer(
        self, connection: Connection, path: str, file: Path, target: Source
    ) -> http.client.HTTPResponse:
        size = file.stat().st_size
        connection.putrequest("PUT", path, skip_accept_encoding=True)
        for name, value in _headers(size, target.authorization).items():
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


def _require_final(parts: SplitResult, answer: http.client.HTTPResponse) -> None:
    """Raise TransferBroken for an answer that may be another one later."""
    if is_for_another_try(answer.status):
        raise TransferBroken(_told(parts, answer))


def _told(parts: SplitResult, answer: http.client.HTTPResponse) -> str:
    return f"{parts.hostname} answered {answer.status}: {answer.reason}"[:300]


def _make_folder(authorization: str, connection: Connection, path: str) -> http.client.HTTPResponse:
    headers = {"User-Agent": "Pilotage"}
    if authorization:
        headers["Authorization"] = authorization
    connection.request("MKCOL", path, headers=headers)
    return connection.getresponse()


def _headers(size: int, authorization: str) -> Mapping[str, str]:
    headers = {
        "User-Agent": "Pilotage",
        "Content-Type": "application/octet-stream",
        "Content-Length": str(size),
    }
    return {**headers, "Authorization": authorization} if authorization else headers
