"""HTTP client of the pilot API: requests, downloads, uploads, and the errors they end with.

Requests are repeated with growing pauses while the server is away. Also the difference of the
server's clock from the node's.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import logging
import random
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ..control import Control, Waker
from .file_contents import NodeFault as NodeFault
from .file_contents import copied, open_file
from .http_route import HttpRoute
from .json_messages import problem_of, retry_after_s, skew_s, storable
from .links import ASKS_FOR_LINK, LINK, LINKED_BYTES, LinkFailed, Links

#: Seconds that the server may be away before the pilot gives up: more than any planned outage.
RETRY_S = 2 * 3600.0
#: A short outage (a restart) is noticed quickly, a long one is not hammered.
SHORT_OUTAGE_S = 120.0
SHORT_PAUSE_S = 5.0
LONG_PAUSE_S = 30.0

TIMEOUT_S = 30.0
_GOODBYE_TIMEOUT_S = 3.0
#: Enough for a job with a hundred thousands of input files.
_ANSWER_LIMIT = 64 * 1024 * 1024
#: An answer that is not JSON may be a gateway's on the way; so many of them are the server's own.
_UNKNOWN_ANSWERS_LIMIT = 5
_CHUNK = 256 * 1024
_TRY_AGAIN = frozenset({408, 425, 429})

log = logging.getLogger("pilot")
T = TypeVar("T")


class Unauthorised(Exception):
    """The server does not accept this pilot's credential (any more)."""


class Unavailable(Exception):
    """The server was away, or not able to answer, for longer than requests are retried.

    `is_answered`: it can be reached, and said of this request that it is not able to.
    """

    def __init__(self, message: str, *, is_answered: bool = False) -> None:
        super().__init__(message)
        self.is_answered = is_answered


class Rejected(Exception):
    """The server understood the request and said no."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status


class Superseded(Rejected):
    """The attempt is no longer ours; nothing we report about it counts.

    With a `size` the server only waits for another piece.
    """

    size: int | None = None


class BadAnswer(Exception):
    """The server's answer cannot be understood, and asking again does not help."""


@contextlib.contextmanager
def parsing(what: str) -> Iterator[None]:
    """Turn faults of a malformed answer into `BadAnswer`."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadAnswer(f"{what}: {error!r}") from error


class HashMismatch(Exception):
    """Hash of the received file is another than the announced one."""


class _Cancelled(Exception):
    """The pilot is to end, so the held answer is not waited for."""


class _TemporaryFailure(Exception):
    """This try failed in a way that another try may mend."""


class _ServerUnable(_TemporaryFailure):
    """The server, or a gateway before it, answers that this cannot be done now.

    `again_s`: so long it asks to wait; 0 if it does not say.
    """

    def __init__(self, message: str, *, again_s: float = 0.0) -> None:
        super().__init__(message)
        self.again_s = again_s


class _UnknownAnswer(_TemporaryFailure):
    """The answer is not one of our server's."""


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None
    source: Path | None = None
    is_held: bool = False


class Client:
    """Requests of one pilot. One instance serves one thread, whose `waker` ends pauses early."""

    def __init__(
        self,
        server_url: str,
        pilot: str,
        token: str,
        control: Control,
        *,
        waker: Waker | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._route = HttpRoute(server_url)
        self._pilot = pilot
        self._authorization = f"Bearer {pilot}:{token}"
        self._control = control
        self._waker = waker or control.waker
        self._timeout_s = timeout_s
        #: Shared by the clients with other credentials.
        self._links = Links(timeout_s)
        #: The server's clock less this node's, as of the latest answer.
        self.skew_s: float | None = None

    def with_token(self, token: str) -> Client:
        """The same client with another credential: the one for messages about one attempt."""
        other = copy.copy(self)
        other._authorization = f"Bearer {self._pilot}:{token}"
        return other

    def call(
        self,
        path: str,
        body: dict[str, Any],
        *,
        retry_s: float = RETRY_S,
        is_authorised: bool = True,
    ) -> dict[str, Any]:
        """POST `body` and return the answer; raise one of this module's exceptions otherwise."""
        request = self._posted(path, body, is_authorised)
        return self._retry(lambda: self._exchange(request, _read_json), path, retry_s)

    def long_poll(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Call whose answer may take long; None once the pilot is to end."""
        request = replace(self._posted(path, body, True), is_held=True)
        try:
            return self._retry(lambda: self._exchange(request, _read_json), path, RETRY_S)
        except _Cancelled:
            return None

    def _posted(self, path: str, body: dict[str, Any], is_authorised: bool) -> _Request:
        content = json.dumps(storable(body)).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        return self._request("POST", path, headers, is_authorised, body=content)

    def download(self, path: str, target: Path, *, sha256: str) -> None:
        """Fetch a file into `target`; raise `HashMismatch` if it is not the announced one."""

        def receive(response: http.client.HTTPResponse) -> str:
            with open_file(target, "wb") as sink:
                digest = copied(response, sink)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return digest

        def attempt() -> str:
            asked = ASKS_FOR_LINK if self._links.are_tried else {}
            return self._exchange(self._request("GET", path, asked, True), receive)

        received = self._retry(attempt, path, RETRY_S)
        if received != sha256:
            raise HashMismatch(f"{path}: expected SHA-256 {sha256}, received {received}")

    def upload(self, path: str, source: Path, *, retry_s: float = RETRY_S) -> None:
        """Send a file; what the server holds under this path is replaced."""
        with open_file(source, "rb") as content:
            digest = copied(content, None)
        size = source.stat().st_size
        if size >= LINKED_BYTES and self._upload_by_link(path, source, digest, size, retry_s):
            return
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size),
            "X-Content-SHA256": digest,
        }
        request = self._request("PUT", path, headers, True, source=source)
        self._retry(lambda: self._exchange(request, _read_json), path, retry_s)

    def _upload_by_link(
        self, path: str, source: Path, digest: str, size: int, retry_s: float
    ) -> bool:
        """Send a file to the store by a link of the server; False where there is none for it."""
        place = path.replace("/files/", "/links/", 1)
        body = {"sha256": digest, "size_bytes": size, "is_sent": False}

        def attempt() -> bool:
            if not self._links.are_tried:
                return False
            link = self._exchange(self._posted(place, body, True), _read_json).get("link")
            if link is None:
                self._links.give_up()
                return False
            with parsing(place):
                url, headers = str(link["url"]), dict(link["headers"])
            self._by_link(lambda: self._links.send(url, headers, source))
            sent = self._posted(place, {**body, "is_sent": True}, True)
            if not self._exchange(sent, _read_json).get("is_stored"):
                self._links.note_failure()
                raise _TemporaryFailure("the store of contents has another file")
            self._links.note_success()
            return True

        try:
            return self._retry(attempt, path, retry_s)
        except Superseded:
            raise
        except Rejected as error:
            if error.status == 404:
                # A server of a release without links has no such address.
                return False
            raise

    def append(self, path: str, offset: int, piece: bytes, *, after: int | None = None) -> int:
        """Send a piece of a growing file, once; return how many bytes of it the server has now.

        With `after`, what is between that byte and the piece is left out. A number other than the
        end of this piece tells from where to go on. Raises `Superseded` when the server wants
        nothing more of it.
        """
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(len(piece))}
        request = self._request("POST", path, headers, True, body=piece)
        left_out = "" if after is None else f"&after={after}"
        request = replace(request, path=f"{request.path}?offset={offset}{left_out}")
        try:
            answer = self._retry(lambda: self._exchange(request, _read_json), path, 0.0)
        except Superseded as error:
            if error.size is None:
                raise
            return error.size
        with parsing(path):
            return int(answer["size"])

    def _request(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        is_authorised: bool,
        *,
        body: bytes | None = None,
        source: Path | None = None,
    ) -> _Request:
        headers = {"Accept": "application/json", "Connection": "close", **headers}
        if is_authorised:
            headers["Authorization"] = self._authorization
        full = f"{self._route.path}/pilot/v1/{urllib.parse.quote(path)}"
        return _Request(method, full, headers, body, source)

    def _retry(self, attempt: Callable[[], T], what: str, retry_s: float) -> T:
        """Repeat `attempt` until it has an answer or `retry_s` are over."""
        started = self._control.clock()
        pause_s = 0.2
        unknown_answers = 0
        while True:
            try:
                return attempt()
            except _TemporaryFailure as trouble:
                reason = str(trouble)
                again_s = trouble.again_s if isinstance(trouble, _ServerUnable) else 0.0
                is_answered = isinstance(trouble, _ServerUnable)
                unknown_answers += isinstance(trouble, _UnknownAnswer)
            if unknown_answers >= _UNKNOWN_ANSWERS_LIMIT:
                raise BadAnswer(f"{what}: {reason}")
            pause_s = max(pause_s, again_s)
            now = self._control.clock()
            if now + pause_s > self._control.retry_until(started, retry_s):
                raise Unavailable(f"{what}: {reason}", is_answered=is_answered)
            if self._control.is_locked_out:
                raise Unauthorised(reason)
            log.warning("%s: %s; next try in %.1f s", what, reason, pause_s)
            self._waker.wait(pause_s)
            limit_s = SHORT_PAUSE_S if now - started < SHORT_OUTAGE_S else LONG_PAUSE_S
            # The spread keeps a thousand pilots from returning in the same instant.
            pause_s = min(pause_s * 2, limit_s) * random.uniform(0.7, 1.0)

    def _exchange(self, request: _Request, receive: Callable[[http.client.HTTPResponse], T]) -> T:
        """Send one request and return what `receive` makes of a good answer."""
        connection = self._route.connect(self._answer_limit_s())
        try:
            self._send(connection, request)
            response = self._answer(connection, request)
            self.skew_s = skew_s(response)
            if response.status == 200:
                return receive(response)
            if response.status != LINK or not ASKS_FOR_LINK.items() <= request.headers.items():
                raise _failure(response)
            link = response.headers.get("Location", "")
        except (http.client.HTTPException, OSError, ValueError) as error:
            if request.is_held and self._control.is_ending:
                raise _Cancelled from error
            raise _TemporaryFailure(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        return self._by_link(lambda: self._links.fetch(link, receive))

    def _by_link(self, exchange: Callable[[], T]) -> T:
        try:
            return exchange()
        except LinkFailed as error:
            raise _TemporaryFailure(str(error)) from None

    def _answer(
        self, connection: http.client.HTTPConnection, request: _Request
    ) -> http.client.HTTPResponse:
        if not request.is_held:
            return connection.getresponse()
        with self._control.cancellable(connection.sock):
            return connection.getresponse()

    def _answer_limit_s(self) -> float:
        if self._control.is_terminated:
            return min(self._timeout_s, _GOODBYE_TIMEOUT_S)
        return self._timeout_s

    def _send(self, connection: http.client.HTTPConnection, request: _Request) -> None:
        target = self._route.target(request.path)
        connection.putrequest(request.method, target, skip_accept_encoding=True)
        for name, value in request.headers.items():
            connection.putheader(name, value)
        try:
            connection.endheaders(request.body)
            if request.source is not None:
                with open_file(request.source, "rb") as content:
                    connection.send(content)
        except (BrokenPipeError, ConnectionResetError):
            return  # a server that refuses an upload answers before it has read all of it


def _failure(response: http.client.HTTPResponse) -> Exception:
    """Exception for an answer that is not 200."""
    status = response.status
    problem = problem_of(response)
    detail = str(problem.get("detail") or problem.get("title") or response.reason)[:500]
    if status == 401:
        return Unauthorised(detail)
    if status == 409:
        superseded = Superseded(status, detail)
        size = problem.get("size")
        superseded.size = size if isinstance(size, int) else None
        return superseded
    if status >= 500 or status in _TRY_AGAIN:
        return _ServerUnable(f"{status}: {detail}", again_s=retry_after_s(response))
    return Rejected(status, detail)


def _read_json(response: http.client.HTTPResponse) -> dict[str, Any]:
    """JSON object of an answer."""
    content = response.read(_ANSWER_LIMIT + 1)
    if len(content) > _ANSWER_LIMIT:
        raise BadAnswer(f"an answer of more than {_ANSWER_LIMIT} bytes")
    if response.length:
        raise http.client.IncompleteRead(content, response.length)
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _UnknownAnswer(f"the answer is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise _UnknownAnswer("the answer is not a JSON object")
    return answer
