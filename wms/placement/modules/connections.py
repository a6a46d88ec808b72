"""Connections to other hosts for transfers: to addresses that were checked, with time limits."""

from __future__ import annotations

import http.client
import io
import posixpath
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from wms.core.public_addresses import NotPublic, public_addresses
from wms.placement.modules.protocol import FAILED, Credential, ModuleFailed, TransferTask

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A place at another host: where to connect, and what to ask for there."""

    scheme: str
    host: str
    port: int
    #: As it stands in the address, with the query.
    path: str

    @property
    def name(self) -> str:
        """The last part of the path, decoded."""
        return posixpath.basename(unquote(urlsplit(self.path).path).rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port, as in an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def at(self, path: str) -> Endpoint:
        """Another path of the same host."""
        return Endpoint(self.scheme, self.host, self.port, path)


def endpoint_of(url: str, ports: dict[str, int]) -> Endpoint:
    """The endpoint of an address. Raises ModuleFailed for one that names no host."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise ModuleFailed(FAILED, f"{url}: {error}") from None
    if not host or parts.scheme not in ports:
        raise ModuleFailed(FAILED, f"{url} names no host")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.scheme, host, port or ports[parts.scheme], path)


def not_reachable(host: str) -> ModuleFailed:
    """Failure of a call to a host that nobody knows, or that must not be reached.

    In the same words: whoever names hosts learns nothing of the networks that the portal can reach.
    """
    return ModuleFailed(
        FAILED,
        f"{host} is not known, or is not at a public address; an administrator may allow it "
        "(PILOTAGE_PLACEMENT_ALLOWED)",
    )


def connected(task: TransferTask, host: str, port: int) -> socket.socket:
    """A connection to a checked address of the host, on which nothing may stall.

    Raises ModuleFailed.
    """
    try:
        addresses = public_addresses(host, port, allowed=task.conf.allowed)
    except NotPublic:
        raise not_reachable(host) from None
    fault = ""
    for address in addresses:
        task.pulse()
        try:
            found = socket.create_connection((address, port), timeout=task.conf.stall_s)
        except OSError as error:
            fault = error.strerror or str(error)
            continue
        # A head and what follows it are two writes: the second one waits for nothing.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    raise ModuleFailed(FAILED, f"{host}:{port} cannot be reached: {fault}")


def answer_at_once(connection: socket.socket | None) -> None:
    """Have the system acknowledge what comes next at once.

    A server that sends a head and a small body by two writes may hold the second one back until
    the first is acknowledged, which takes 40 ms on a connection that has been used for a while.
    The system forgets it soon: it is said before each answer.
    """
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def over_tls(plain: socket.socket, host: str) -> ssl.SSLSocket:
    """The connection by TLS, where the other side has to prove its name. Raises ModuleFailed."""
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise ModuleFailed(
            FAILED, f"the certificate of {host} was refused: {error.verify_message}"
        ) from None


class _Pulsed(io.RawIOBase):
    """Bytes that come by a connection, with a pulse before each piece."""

    def __init__(self, connection: socket.socket, pulse: Callable[[], None]) -> None:
        self._raw, self._pulse = connection.makefile("rb", buffering=0), pulse

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._pulse()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def pulsed(connection: socket.socket, pulse: Callable[[], None]) -> io.BufferedReader:
    """Reader of a connection, with a pulse for each piece: a line may come byte by byte."""
    return io.BufferedReader(_Pulsed(connection, pulse))


class PulsedAnswer(http.client.HTTPResponse):
    """An answer whose head and ends of chunks, too, may not come as slowly as they like."""

    def __init__(self, pulse: Callable[[], None], sock: socket.socket, method: str | None) -> None:
        super().__init__(sock, method=method)
        self.fp.close()
        self.fp = pulsed(sock, pulse)

    def read_into(self, buffer: memoryview) -> int:
        """Read what has come of the body into a buffer; 0 at its end."""
        if self.isclosed():
            return 0
        if self.chunked:
            piece = self.read1(len(buffer))
            buffer[: len(piece)] = piece
            return len(piece)
        size = self.fp.readinto1(buffer if self.length is None else buffer[: self.length])
        if self.length is not None:
            self.length -= size
        if not size or self.length == 0:
            self.close()
        return size


class CheckedConnection(http.client.HTTPConnection):
    """A connection for HTTP to an address that was checked."""

    def __init__(self, task: TransferTask, endpoint: Endpoint, *, is_secure: bool) -> None:
        super().__init__(endpoint.host, endpoint.port, timeout=task.conf.stall_s)
        self._task, self._endpoint, self._is_secure = task, endpoint, is_secure

    def connect(self) -> None:
        """Connect to one of the checked addresses."""
        plain = connected(self._task, self._endpoint.host, self._endpoint.port)
        self.sock = over_tls(plain, self._endpoint.host) if self._is_secure else plain


def credential_of(task: TransferTask, endpoint: Endpoint) -> Credential | None:
    """Credential that the owner has stored for this endpoint."""
    return task.credential(endpoint.scheme, endpoint.host, endpoint.port)
