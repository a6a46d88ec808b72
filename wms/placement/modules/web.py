"""Files of `http:`, `https:`, `dav:` and `davs:` addresses: read with ranges, written by PUT.

At servers that speak WebDAV (`dav:` over HTTP, `davs:` over HTTPS) folders are made, and a file
appears under its name when it is complete. Redirects are followed for reading, each to a host that
is checked as the first one; a credential goes to its own endpoint alone.
"""

from __future__ import annotations

import base64
import http.client
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, cast
from urllib.parse import quote, urljoin, urlsplit

from wms.placement.modules.connections import (
    CheckedConnection,
    Endpoint,
    PulsedAnswer,
    answer_at_once,
    credential_of,
    endpoint_of,
)
from wms.placement.modules.kept import KeptConnections
from wms.placement.modules.parts import earlier_marks, mark_of
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferResult, TransferTask
from wms.placement.modules.streaming import CHUNK_BYTES, Pieces, Reading, Source

PORTS: Final = {"http": 80, "https": 443, "dav": 80, "davs": 443}
SECURE = frozenset({"https", "davs"})
DAV = frozenset({"dav", "davs"})
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: So much of an answer that is no file is read.
ANSWER_BYTES = 64 * 1024

Answer = http.client.HTTPResponse


class Client:
    """The requests of one transfer; one that signs them itself shows no password or token.

    A connection serves one request after the other while each answer is read whole.
    """

    def __init__(self, task: TransferTask, *, signs_itself: bool = False) -> None:
        self._task, self._signs_itself = task, signs_itself
        self._kept = task.kept or KeptConnections()
        self._connection: http.client.HTTPConnection | None = None
        self._place = ("", "", 0)
        self._answer: Answer | None = None

    def close(self) -> None:
        """End the connection, if no other transfer can go on with it."""
        self._put_away()
        if self._task.kept is None:
            self._kept.close()

    def _put_away(self) -> None:
        connection, answer = self._connection, self._answer
        self._connection = self._answer = None
        if connection is None:
            return
        if answer is None or not _is_read(answer) or answer.will_close:
            if answer is not None:
                # It holds the connection: a server would go on with what nobody reads, and one that
                # serves one request at a time answers no other meanwhile.
                answer.close()
            connection.close()
            return
        answer.close()
        self._kept.keep(self._place, connection)

    def _connect(self, endpoint: Endpoint) -> bool:
        """Take a connection to the endpoint; whether it has served a request before."""
        self._place = endpoint.scheme, endpoint.host, endpoint.port
        self._connection = self._kept.take(self._place)
        if self._connection is not None:
            return True
        self._connection = CheckedConnection(
            self._task, endpoint, is_secure=endpoint.scheme in SECURE
        )
        return False

    def ask(
        self,
        method: str,
        endpoint: Endpoint,
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes] | None = None,
    ) -> Answer:
        """The answer, whose body was not read yet. Raises ModuleFailed and OSError."""
        self._put_away()
        sent = {"User-Agent": "Pilotage", "Accept-Encoding": "identity", **(headers or {})}
        if body is None and method not in ("GET", "HEAD"):
            # Without it some servers wait for a body.
            sent["Content-Length"] = "0"
        if not self._signs_itself:
            sent |= _authorization(self._task, endpoint)
        was_used = self._connect(endpoint)
        try:
            return self._exchange(method, endpoint, sent, body)
        except (BrokenPipeError, ConnectionResetError) as error:
            if not was_used or body is not None:
                raise ModuleFailed(FAILED, f"{endpoint.host} ended the connection") from error
        # It ended just when it was asked again, as servers do when nothing was said for long.
        self._put_away()
        self._kept.close()
        return self.ask(method, endpoint, headers)

    def _exchange(
        self, method: str, endpoint: Endpoint, sent: dict[str, str], body: Iterable[bytes] | None
    ) -> Answer:
        assert self._connection is not None
        self._connection.response_class = cast(
            "type[Answer]", partial(PulsedAnswer, self._task.pulse)
        )
        self._connection.request(
            method, endpoint.path, body=body, headers=sent,
            encode_chunked=sent.get("Transfer-Encoding") == "chunked",
        )  # fmt: skip
        self._task.pulse()
        answer_at_once(self._connection.sock)
        self._answer = self._connection.getresponse()
        return self._answer

    def read(self, endpoint: Endpoint, headers: Mapping[str, str]) -> tuple[Answer, Endpoint]:
        """The answer to GET, and where it came from in the end."""
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self.ask("GET", endpoint, headers)
            if answer.status not in _REDIRECTS:
                return answer, endpoint
            endpoint = _redirected(endpoint, answer)
        raise ModuleFailed(FAILED, f"more than {_MOST_REDIRECTS} redirects")


def _is_read(answer: Answer) -> bool:
    """Whether nothing of an answer is left that the next one would have to come behind."""
    return answer.isclosed() or (not answer.chunked and answer.length == 0)


def _redirected(endpoint: Endpoint, answer: Answer) -> Endpoint:
    url = urljoin(web_url(endpoint), answer.getheader("Location", ""))
    target = endpoint_of(url, {"http": 80, "https": 443})
    if endpoint.scheme in SECURE and target.scheme != "https":
        raise ModuleFailed(FAILED, f"{endpoint.host} redirects to {target.host} without TLS")
    return target


def _authorization(task: TransferTask, endpoint: Endpoint) -> dict[str, str]:
    given = credential_of(task, endpoint)
    if given is None:
        return {}
    if given.token:
        return {"Authorization": f"Bearer {given.token}"}
    pair = base64.b64encode(f"{given.user}:{given.secret}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


@contextmanager
def opened(task: TransferTask) -> Iterator[Source]:
    """The file at the source address. Raises ModuleFailed."""
    client = Client(task)
    try:
        first = endpoint_of(task.source_url, PORTS)
        answer, endpoint = client.read(first, {})
        require(answer, first, {200})

        def again(headers: dict[str, str]) -> tuple[int, int | None, AnswerPieces]:
            behind, _ = client.read(endpoint, headers)
            require(behind, endpoint, {200, 206})
            return behind.status, begin_of(behind), AnswerPieces(behind)

        yield source_of(answer, first.name, again)
    finally:
        client.close()


def source_of(
    answer: Answer,
    name: str,
    again: Callable[[dict[str, str]], tuple[int, int | None, AnswerPieces]],
) -> Source:
    """The file of an answer; `again` asks for it with other headers, to have the rest of it."""
    size, version = size_of(answer), _version(answer)

    def begin(offset: int) -> tuple[int, Pieces | Iterable[bytes]]:
        if not offset or not version:
            return 0, AnswerPieces(answer)
        if offset == size:
            return offset, ()
        status, begins_at, pieces = again({"Range": f"bytes={offset}-", "If-Range": version})
        return (offset if status == 206 and begins_at == offset else 0), pieces

    return Source(begin, name, size, version=version)


def _version(answer: Answer) -> str:
    """Mark that a file is the same, if it can be had in parts."""
    tag = answer.getheader("ETag", "")
    has_ranges = answer.getheader("Accept-Ranges", "") == "bytes"
    is_strong = tag and not tag.startswith("W/")
    # A date tells less than a tag, but of a file that is not just being written it is enough.
    return (tag if is_strong else answer.getheader("Last-Modified", "")) if has_ranges else ""


def size_of(answer: Answer) -> int | None:
    """The size that an answer tells."""
    text = answer.getheader("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def begin_of(answer: Answer) -> int | None:
    """Where the part of a file begins that an answer has."""
    unit, _, rest = answer.getheader("Content-Range", "").partition(" ")
    begin = rest.partition("-")[0]
    return int(begin) if unit == "bytes" and begin.isascii() and begin.isdigit() else None


class AnswerPieces:
    """The body of an answer: what has come, not whole chunks, so that each step has its time."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._answer.read1(CHUNK_BYTES):
            yield piece

    def into(self, buffer: memoryview) -> Iterator[memoryview]:
        """The pieces, each in the place of the one before."""
        assert isinstance(self._answer, PulsedAnswer)
        while size := self._answer.read_into(buffer):
            yield buffer[:size]


def require(answer: Answer, endpoint: Endpoint, good: set[int]) -> None:
    """Raise ModuleFailed for an answer that is none of these."""
    if answer.status in good:
        return
    told = {
        401: "it asks for a credential, or refuses the one that is stored",
        403: "it is forbidden",
        404: "there is no such file",
        507: "the storage is full",
    }.get(answer.status, answer.reason)
    raise ModuleFailed(FAILED, f"{endpoint.host} answered {answer.status}: {told}"[:500])


def write(reading: Reading) -> TransferResult:
    """Put the file at the destination address. Raises ModuleFailed."""
    task = reading.task
    target = endpoint_of(task.destination_url, PORTS)
    if target.path.endswith("/"):
        target = target.at(target.path + quote(reading.source.name))
    client = Client(task)
    try:
        if target.scheme in DAV:
            _write_dav(client, target, reading)
        else:
            _put(client, target, reading)
        _compare(client, target, reading)
    finally:
        client.close()
    return TransferResult(reading.size_bytes)


def _put(client: Client, target: Endpoint, reading: Reading) -> None:
    size = reading.source.size_bytes
    length = {"Transfer-Encoding": "chunked"} if size is None else {"Content-Length": str(size)}
    answer = client.ask(
        "PUT", target, {"Content-Type": "application/octet-stream", **length}, reading.body()
    )
    answer.read(ANSWER_BYTES)
    require(answer, target, {200, 201, 204})


def _write_dav(client: Client, target: Endpoint, reading: Reading) -> None:
    """Make the folders, write the file under another name, and give it its own."""
    folder, _, name = urlsplit(target.path).path.rpartition("/")
    make_folders(client, target, folder)
    for mark in earlier_marks(reading.task):
        _remove(client, target.at(_part(folder, name, mark)))
    temporary = target.at(_part(folder, name, mark_of(reading.task)))
    try:
        _put(client, temporary, reading)
        move(client, temporary, target)
    except BaseException:
        with suppress(ModuleFailed, OSError, http.client.HTTPException):
            _remove(client, temporary)
        raise


def _part(folder: str, name: str, mark: str) -> str:
    return f"{folder}/.{name[:150]}.{mark}.part"


def _remove(client: Client, place: Endpoint) -> None:
    """Remove what may be there; the answer does not matter."""
    client.ask("DELETE", place).read(ANSWER_BYTES)


def move(client: Client, old: Endpoint, new: Endpoint) -> None:
    """Give a file at a WebDAV server another name, in place of what has that."""
    answer = client.ask("MOVE", old, {"Destination": web_url(new), "Overwrite": "T"})
    answer.read(ANSWER_BYTES)
    require(answer, new, {201, 204})


def web_url(endpoint: Endpoint) -> str:
    """The address of a place as WebDAV servers know it among themselves."""
    scheme = "https" if endpoint.scheme in SECURE else "http"
    return f"{scheme}://{endpoint.authority}{endpoint.path}"


def make_folders(client: Client, target: Endpoint, folder: str) -> None:
    """Make a folder of a WebDAV server and those above it, where they are missing."""
    parts = [part for part in folder.split("/") if part]
    for count in range(1, len(parts) + 1):
        answer = client.ask("MKCOL", target.at("/" + "/".join(parts[:count]) + "/"))
        answer.read(ANSWER_BYTES)
        # There already (405); or a part of the way that nobody may make, which the next one tells.
        if answer.status in (401, 507):
            require(answer, target, {201})


def _compare(client: Client, target: Endpoint, reading: Reading) -> None:
    """Raise ModuleFailed where the server tells another size of the file that it has got."""
    answer = client.ask("HEAD", target)
    require(answer, target, {200, 204})
    size = size_of(answer)
    if size is not None and size != reading.size_bytes:
        raise ModuleFailed(
            FAILED, f"{target.host} has {size} bytes of {reading.size_bytes} that were sent"
        )


def remove(task: TransferTask) -> TransferResult:
    """Remove the file at the source address; one that is gone is no fault. Raises ModuleFailed."""
    client = Client(task)
    try:
        target = endpoint_of(task.source_url, PORTS)
        answer = client.ask("DELETE", target)
        answer.read(ANSWER_BYTES)
        require(answer, target, {200, 202, 204, 404, 410})
    finally:
        client.close()
    return TransferResult(None)
