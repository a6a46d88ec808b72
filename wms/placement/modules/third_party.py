"""Copies between two WebDAV servers (HTTP third-party copy): the bytes pass neither us nor a pilot.

The destination's server is asked to fetch the file, else the source's to send it. What the one may
do at the other it is shown for this transfer: a macaroon that the other end makes for this file and
some minutes, else the owner's token; never a password, and only over TLS. Where neither server does
it, the file is streamed.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, urlsplit

from wms.placement.modules.connections import Endpoint, credential_of, endpoint_of
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferResult, TransferTask
from wms.placement.modules.streaming import Reading
from wms.placement.modules.web import (
    ANSWER_BYTES,
    PORTS,
    SECURE,
    Client,
    make_folders,
    move,
    opened,
    require,
    size_of,
    web_url,
)
from wms.placement.request_ad import Checksums

_WANTED: Final = {"Want-Digest": "sha-256;q=1, md5;q=0.5, adler32;q=0.3"}
_MARKERS: Final = "text/perf-marker-stream"
_LINE_BYTES: Final = 4096
#: Beyond the time that an attempt may take: to begin, and to be told of the end.
_SPARE_S: Final = 60


class Unable(Exception):
    """The servers do not copy this file by themselves, and why."""


class _Silent(Unable):
    """A server may be copying and does not tell: nobody else may write under the same name."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy that is to be made: `temporary` is the name under which it comes."""

    source: Endpoint
    target: Endpoint
    temporary: Endpoint
    size_bytes: int | None
    most_bytes: int


def copied(task: TransferTask) -> TransferResult:
    """Have the file copied from server to server. Raises Unable and ModuleFailed."""
    client = Client(task)
    try:
        copy = _prepared(client, task)
        try:
            how = _carry_out(client, task, copy)
            told = _size_there(client, task, copy)
            size, sha256 = _checked(client, task, copy, told)
            move(client, copy.temporary, copy.target)
        except BaseException:
            with suppress(ModuleFailed, OSError, http.client.HTTPException):
                client.ask("DELETE", copy.temporary).read(ANSWER_BYTES)
            raise
    finally:
        client.close()
    return TransferResult(size, sha256=sha256, note=f"copied from server to server, {how}")


def _prepared(client: Client, task: TransferTask) -> _Copy:
    """The copy, for which there is room and a folder. Raises Unable and ModuleFailed."""
    source = endpoint_of(task.source_url, PORTS)
    target = endpoint_of(task.destination_url, PORTS)
    if target.path.endswith("/"):
        target = target.at(target.path + quote(source.name))
    answer = client.ask("HEAD", source)
    if answer.status != http.client.OK:
        # Reading tells more of what is not there, and follows what leads elsewhere.
        raise Unable(f"{source.host} answered {answer.status} to HEAD")
    size = size_of(answer)
    most = task.conf.file_bytes
    if size is not None and size > most:
        raise ModuleFailed(FAILED, f"the file is larger than {most} bytes")
    if size is not None and task.expected_bytes not in (None, size):
        raise ModuleFailed(FAILED, f"the file has {size} bytes, not {task.expected_bytes}")
    most = min(most, task.hold(size, most))
    folder, _, name = urlsplit(target.path).path.rpartition("/")
    make_folders(client, target, folder)
    temporary = target.at(f"{folder}/.{name[:150]}.{secrets.token_hex(8)}.part")
    return _Copy(source, target, temporary, size, most)


def _carry_out(client: Client, task: TransferTask, copy: _Copy) -> str:
    """Have it copied in the first way that a server takes; how. Raises Unable."""
    ways: dict[str, Callable[[Client, TransferTask, _Copy], None]] = {
        "fetched by the destination": _fetched,
        "sent by the source": _sent,
    }
    if _place(copy.source) == _place(copy.target):
        ways = {"within the server": _within}
    refusals: list[str] = []
    for how, way in ways.items():
        try:
            way(client, task, copy)
        except _Silent as error:
            raise Unable("; ".join([*refusals, str(error)])) from None
        except Unable as error:
            refusals.append(str(error))
        else:
            return how
    raise Unable("; ".join(refusals))


def _place(endpoint: Endpoint) -> tuple[str, str, int]:
    return endpoint.scheme, endpoint.host, endpoint.port


def _within(client: Client, task: TransferTask, copy: _Copy) -> None:
    headers = {"Destination": web_url(copy.temporary), "Overwrite": "T"}
    _ask(client, task, copy, copy.source, headers)


def _fetched(client: Client, task: TransferTask, copy: _Copy) -> None:
    headers = {"Source": web_url(copy.source), **_shown(client, task, copy.source, "DOWNLOAD")}
    if _SHOWN in headers:
        _require_tls(copy.target)
    _ask(client, task, copy, copy.temporary, headers)


def _sent(client: Client, task: TransferTask, copy: _Copy) -> None:
    shown = _shown(client, task, copy.temporary, "UPLOAD")
    headers = {"Destination": web_url(copy.temporary), **shown}
    if _SHOWN in headers:
        _require_tls(copy.source)
    _ask(client, task, copy, copy.source, headers)


_SHOWN: Final = "TransferHeaderAuthorization"


def _shown(client: Client, task: TransferTask, other: Endpoint, activity: str) -> dict[str, str]:
    """What a server shows at the other end. Raises Unable where that may not be handed on."""
    given = credential_of(task, other)
    if given is None:
        return {}
    _require_tls(other)
    macaroon = _macaroon(client, task, other, activity)
    if not macaroon and not given.token:
        raise Unable(f"{other.host} makes no macaroon, and a password is not handed on")
    return {_SHOWN: f"Bearer {macaroon or given.token}"}


def _require_tls(end: Endpoint) -> None:
    if end.scheme not in SECURE:
        raise Unable(f"{end.host} is not reached by TLS, and a credential is handed on by it alone")


def _macaroon(client: Client, task: TransferTask, other: Endpoint, activity: str) -> str:
    """A credential of the other end for one file and this transfer; empty if it makes none."""
    lifetime_s = int(task.conf.limit_s) + _SPARE_S
    body = json.dumps({"caveats": [f"activity:{activity}"], "validity": f"PT{lifetime_s}S"})
    headers = {
        "Content-Type": "application/macaroon-request",
        "Content-Length": str(len(body)),
    }
    answer = client.ask("POST", other, headers, [body.encode()])
    text = answer.read(ANSWER_BYTES)
    if answer.status != http.client.OK:
        return ""
    try:
        macaroon = json.loads(text)["macaroon"]
    except (ValueError, LookupError, TypeError):
        return ""
    is_word = isinstance(macaroon, str) and macaroon.isascii() and macaroon.isprintable()
    return macaroon if is_word and " " not in macaroon else ""


def _ask(
    client: Client, task: TransferTask, copy: _Copy, active: Endpoint, headers: dict[str, str]
) -> None:
    """Ask a server for the copy and follow it to its end. Raises Unable and ModuleFailed."""
    # What servers of grids understand: no certificate of the user is handed on.
    sent = {"Credential": "none", "X-No-Delegate": "true", "Overwrite": "T", **headers}
    try:
        answer = client.ask("COPY", active, sent)
    except (OSError, http.client.HTTPException, ModuleFailed) as error:
        if isinstance(error, ModuleFailed) and error.exit_code != FAILED:
            raise
        # Servers that answer when the copy is there say nothing before, however long it takes.
        told = str(error) or type(error).__name__
        raise _Silent(f"{active.host} did not answer to COPY: {told}") from None
    if answer.status not in (200, 201, 202, 204):
        answer.read(ANSWER_BYTES)
        raise Unable(f"{active.host} answered {answer.status} to COPY")
    if answer.getheader("Content-Type", "").partition(";")[0].strip() == _MARKERS:
        _follow(task, copy, active, answer)
    elif answer.status == http.client.ACCEPTED:
        raise _Silent(f"{active.host} does not tell how far its copy is")
    else:
        answer.read(ANSWER_BYTES)


def _follow(
    task: TransferTask, copy: _Copy, active: Endpoint, answer: http.client.HTTPResponse
) -> None:
    """Read how far the server is, to the end that it tells.

    Raises ModuleFailed, or Unable where nothing was moved.
    """
    progress = _Progress(active.host, copy.most_bytes, task.conf.stall_s)
    told = f"{active.host} did not tell the end"
    try:
        for line in _lines(answer):
            task.pulse()
            if progress.has_ended(line):
                return
            if time.monotonic() > progress.stalls_at:
                told = f"nothing moved for {task.conf.stall_s:g} s"
                break
    except (OSError, http.client.HTTPException) as error:
        told = f"{active.host} told no more: {str(error) or type(error).__name__}"
    if not progress.moved:
        raise _Silent(told)
    raise ModuleFailed(FAILED, f"{told}, after {progress.moved} bytes")


class _Progress:
    """Bytes that a server has moved, as it tells line by line."""

    def __init__(self, host: str, most_bytes: int, stall_s: float) -> None:
        self._host, self._most_bytes, self._stall_s = host, most_bytes, stall_s
        self.moved, self.stalls_at = 0, time.monotonic() + stall_s

    def has_ended(self, line: str) -> bool:
        """Whether the copy is there, by this line. Raises Unable and ModuleFailed."""
        name, _, value = (part.strip() for part in line.partition(":"))
        if name.lower() == "failure":
            told = f"{self._host}: {value or 'it failed'}"[:300]
            raise ModuleFailed(FAILED, told) if self.moved else Unable(told)
        if name == "Stripe Bytes Transferred" and value.isascii() and value.isdigit():
            self._reach(int(value))
        return name.lower() == "success"

    def _reach(self, size: int) -> None:
        if size > self._most_bytes:
            raise ModuleFailed(FAILED, f"the file is larger than {self._most_bytes} bytes")
        if size > self.moved:
            self.moved, self.stalls_at = size, time.monotonic() + self._stall_s


def _lines(answer: http.client.HTTPResponse) -> Iterator[str]:
    """Lines as they come; an empty one also where no line has ended yet, so that time goes on."""
    begun = b""
    while piece := answer.read1(_LINE_BYTES):
        *lines, begun = (begun + piece).split(b"\n")
        for line in lines or [b""]:
            yield line.decode(errors="replace")
        # Of a longer line nothing is of use.
        begun = begun[:_LINE_BYTES]
    yield begun.decode(errors="replace")


def _size_there(client: Client, task: TransferTask, copy: _Copy) -> int | None:
    """Size of the copy as the destination tells it, else as the source did.

    Raises ModuleFailed for another one than is to come.
    """
    answer = client.ask("HEAD", copy.temporary)
    require(answer, copy.temporary, {200, 204})
    size = size_of(answer)
    if size is None:
        return copy.size_bytes
    if copy.size_bytes is not None and size != copy.size_bytes:
        raise ModuleFailed(
            FAILED, f"{copy.target.host} has {size} bytes of {copy.size_bytes} that were to come"
        )
    if size > copy.most_bytes:
        raise ModuleFailed(FAILED, f"the file is larger than {copy.most_bytes} bytes")
    if task.expected_bytes not in (None, size):
        raise ModuleFailed(FAILED, f"the file has {size} bytes, not {task.expected_bytes}")
    return size


def _checked(client: Client, task: TransferTask, copy: _Copy, size: int | None) -> tuple[int, str]:
    """Size and SHA-256, where that is needed, of the copy. Raises ModuleFailed for a wrong one.

    Checksums are asked of the destination's server; one that tells none that can be compared has
    the copy read, once, and so has a copy whose size nobody tells.
    """
    if size is None:
        return _read(task, copy)
    wanted = task.checksums
    pairs = ((wanted.sha256, "sha256"), (wanted.md5, "md5"), (wanted.adler32, "adler32"))
    asked = [(value, name) for value, name in pairs if value]
    if not asked and not task.needs_sha256:
        return size, ""
    told = _digests(client, copy.temporary)
    compared = [(value, name) for value, name in asked if getattr(told, name)]
    for value, name in compared:
        found = getattr(told, name)
        if found != value:
            raise ModuleFailed(FAILED, f"the file has {name} {found}, not {value}")
    # A file with the right checksum is the one whose SHA-256 is known.
    sha256 = told.sha256 or (wanted.sha256 if compared else "")
    if (compared or not asked) and (sha256 or not task.needs_sha256):
        return size, sha256
    return _read(task, copy)


def _read(task: TransferTask, copy: _Copy) -> tuple[int, str]:
    """Size and SHA-256 of the copy, read once. Raises ModuleFailed for what is not wanted."""
    scheme = copy.temporary.scheme
    url = f"{scheme}://{copy.temporary.authority}{copy.temporary.path}"
    with opened(replace(task, source_url=url, hold=lambda size, most: copy.most_bytes)) as source:
        reading = Reading(task, source)
        for _ in reading:
            pass
    return reading.size_bytes, reading.sha256


def _digests(client: Client, endpoint: Endpoint) -> Checksums:
    """Checksums that a server tells of a file (RFC 3230), in hexadecimal."""
    answer = client.ask("HEAD", endpoint, _WANTED)
    found = {}
    for each in answer.getheader("Digest", "").split(","):
        name, _, value = each.strip().partition("=")
        found[name.lower()] = value
    return Checksums(
        _hexadecimal(found.get("sha-256", ""), 64),
        _hexadecimal(found.get("md5", ""), 32),
        _hexadecimal(found.get("adler32", ""), 8),
    )


def _hexadecimal(value: str, digits: int) -> str:
    """A checksum as we write it; empty for one that is none."""
    if len(value) == digits:
        return value.lower() if set(value.lower()) <= set("0123456789abcdef") else ""
    with suppress(ValueError, binascii.Error):
        plain = base64.b64decode(value, validate=True).hex()
        return plain if len(plain) == digits else ""
    return ""
