"""Fetches of files by HTTP: in a few tries, each of which goes on where the last one broke off."""

from __future__ import annotations

import hashlib
import http.client
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urljoin

from .connections import PORTS, Check, Connection, parsed
from .rules import Source, TransferBroken, TransferRefused, TransferRules, without_secrets
from .writing import Sink

TRIES = 4
#: Pauses between tries.
PAUSES_S = (1.0, 5.0, 15.0)
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRY_AGAIN = frozenset({408, 423, 425, 429})
_CHUNK = 2**20

log = logging.getLogger("pilot")


@dataclass(frozen=True)
class Fetcher:
    """Fetches files for one job. `check` raises an exception once the job is not wanted any more.

    `pause` waits so many seconds, `moved` is told how many bytes have come.
    """

    rules: TransferRules
    check: Check
    pause: Callable[[float], None]
    moved: Callable[[int], None]

    def fetch(
        self, sources: Sequence[Source], target: Path, *, most_bytes: int, sha256: str = ""
    ) -> None:
        """Have the file of the first source that gives it, with this SHA-256 if one is told.

        Raises TransferRefused and TransferBroken, and OSError where it cannot be written.
        """
        left, fault = list(sources), ""
        part = _Part(self, target, min(most_bytes, self.rules.file_bytes), is_hashed=bool(sha256))
        for number in range(TRIES):
            if number:
                self.pause(PAUSES_S[number - 1])
            source = left[number % len(left)]
            try:
                part.go_on(source)
                if not sha256 or part.sha256() == sha256:
                    return
                part.forget()
                fault = "what came has another SHA-256 than was registered"
            except TransferRefused as error:
                left.remove(source)
                if not left:
                    raise
                fault = str(error)
            except TransferBroken as error:
                fault = str(error)
            log.warning("%s: %s", without_secrets(source.url), fault)
        raise TransferBroken(f"{fault} ({TRIES} tries)")


class _Part:
    """Part of a file that has come, and the tag of the file that the rest must have."""

    def __init__(self, fetcher: Fetcher, target: Path, most_bytes: int, *, is_hashed: bool) -> None:
        self._fetcher = fetcher
        self._target = target
        self._most_bytes = most_bytes
        self._size = 0
        self._digest = hashlib.sha256() if is_hashed else None
        self._version = ""
        self._source = ""
        self._until = 0.0

    def go_on(self, source: Source) -> None:
        """One try to have the rest."""
        self._until = time.monotonic() + self._fetcher.rules.limit_s
        if source.url != self._source:
            self._source, self._version = source.url, ""
        try:
            self._ask(source)
        except (http.client.HTTPException, ValueError) as error:
            # The second one: what is no header, and no port.
            raise TransferBroken(f"the answer is none of HTTP: {error!r}") from error

    def sha256(self) -> str:
        """SHA-256 of all that has come."""
        return str(self._digest.hexdigest()) if self._digest else ""

    def forget(self) -> None:
        """Begin anew with the next try."""
        self._size, self._version = 0, ""

    def _check(self) -> None:
        self._fetcher.check()
        if time.monotonic() > self._until:
            limit_s = self._fetcher.rules.limit_s
            raise TransferBroken(f"it was not over within {limit_s:g} s")

    def _ask(self, source: Source) -> None:
        first = parts = parsed(source.url)
        for _ in range(_MOST_REDIRECTS + 1):
            with Connection(parts, self._fetcher.rules, self._check) as connection:
                is_own = _origin(parts) == _origin(first)
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                headers = self._headers(source.authorization if is_own else "")
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                if answer.status not in _REDIRECTS:
                    self._take(answer, parts)
                    return
                parts = _redirected(parts, answer)
        raise TransferRefused(f"more than {_MOST_REDIRECTS} redirects")

    def _headers(self, authorization: str) -> Mapping[str, str]:
        headers = {"User-Agent": "Pilotage", "Accept-Encoding": "identity"}
        if authorization:
            headers["Authorization"] = authorization
        if self._size and self._version:
            headers.update({"Range": f"bytes={self._size}-", "If-Range": self._version})
        return headers

    def _take(self, answer: http.client.HTTPResponse, parts: SplitResult) -> None:
        offset = self._offset(answer, parts)
        self._version = _version(answer)
        if not offset and self._digest:
            self._digest = hashlib.sha256()
        if answer.length is not None:
            self._require_room(offset + answer.length)
        sink = Sink(self._target, offset, self._digest)
        try:
            with sink:
                self._receive(answer, sink, offset)
        finally:
            # So that what is counted is there when the rest is asked for.
            self._size = sink.size
        if answer.length:
            raise TransferBroken(f"the connection ended, {answer.length} bytes too early")

    def _receive(self, answer: http.client.HTTPResponse, sink: Sink, size: int) -> None:
        while True:
            piece = answer.read1(_CHUNK)
            if not piece:
                return
            size += len(piece)
            self._require_room(size)
            sink.add(piece)
            self._fetcher.moved(len(piece))

    def _offset(self, answer: http.client.HTTPResponse, parts: SplitResult) -> int:
        """Place in the file of an answer's begin. Raises TransferRefused and TransferBroken."""
        if answer.status == 200:
            return 0
        if answer.status == 206 and self._version and _begin(answer) == self._size:
            return self._size
        if answer.status in (206, 416):
            # Next time from its beginning.
            self._version = ""
            raise TransferBroken(f"{parts.hostname} gave another part than was asked for")
        told = f"{parts.hostname} answered {answer.status}: {answer.reason}"[:300]
        if is_for_another_try(answer.status):
            raise TransferBroken(told)
        raise TransferRefused(told)

    def _require_room(self, size: int) -> None:
        if size > self._most_bytes:
            raise TransferRefused(f"it is larger than the {self._most_bytes} bytes that it may be")


def is_for_another_try(status: int) -> bool:
    """Whether a server that answers so may do it later."""
    return status >= 500 or status in _TRY_AGAIN


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, (parts.hostname or "").lower(), parts.port or PORTS[parts.scheme]


def _redirected(parts: SplitResult, answer: http.client.HTTPResponse) -> SplitResult:
    target = parsed(urljoin(parts.geturl(), str(answer.headers.get("Location", ""))))
    if parts.scheme == "https" and target.scheme != "https":
        raise TransferRefused(f"{parts.hostname} redirects to {target.hostname} without TLS")
    return target


def _version(answer: http.client.HTTPResponse) -> str:
    """Tag by which a file is known to be the same, if it can be had in parts."""
    if answer.status == 200 and answer.headers.get("Accept-Ranges", "") != "bytes":
        return ""
    tag = str(answer.headers.get("ETag", ""))
    is_strong = bool(tag) and not tag.startswith("W/")
    version = tag if is_strong else str(answer.headers.get("Last-Modified", ""))
    # It is sent back in a header.
    return version if version.isascii() and version.isprintable() else ""


def _begin(answer: http.client.HTTPResponse) -> int | None:
    """Place at which the part of a file begins that an answer has."""
    unit, _, rest = str(answer.headers.get("Content-Range", "")).partition(" ")
    begin = rest.partition("-")[0]
    return int(begin) if unit == "bytes" and begin.isascii() and begin.isdigit() else None
