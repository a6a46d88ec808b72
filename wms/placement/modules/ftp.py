"""Files of `ftp:` and `ftps:` addresses: read with restarts, written under another name first.

Passive connections go to the server's own address, whatever it names. `ftps:` is FTP with TLS on
both connections (RFC 4217).
"""

from __future__ import annotations

import ftplib
import io
import posixpath
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import unquote

from wms.placement.addresses import CONTROL
from wms.placement.modules.connections import (
    Endpoint,
    connected,
    credential_of,
    endpoint_of,
    over_tls,
    pulsed,
)
from wms.placement.modules.parts import earlier_marks, mark_of
from wms.placement.modules.protocol import FAILED, ModuleFailed, TransferResult, TransferTask
from wms.placement.modules.streaming import CHUNK_BYTES, Reading, Source

_PORTS: Final = {"ftp": 21, "ftps": 21}
#: What ends a session as it should be ended, or not: nothing depends on it.
_AT_THE_END = (ftplib.Error, OSError, EOFError)
#: So long a server has to end the TLS of a connection for data.
_GOODBYE_S: Final = 5.0


class _Session(ftplib.FTP):
    """A session whose connections all go to one checked address."""

    def __init__(self, task: TransferTask, endpoint: Endpoint) -> None:
        super().__init__(timeout=task.conf.stall_s, encoding="utf-8")
        self._task, self._endpoint = task, endpoint
        self.host, self.port = endpoint.host, endpoint.port
        self.sock = connected(task, endpoint.host, endpoint.port)
        self._begin()

    def _begin(self) -> None:
        assert self.sock is not None
        self.af = self.sock.family
        self.file = self._reader(self.sock)
        self.welcome = self.getresp()
        if self._endpoint.scheme == "ftps":
            self.voidcmd("AUTH TLS")
            self.sock = over_tls(self.sock, self._endpoint.host)
            self.file = self._reader(self.sock)

    def _reader(self, connection: socket.socket) -> io.TextIOWrapper:
        return io.TextIOWrapper(pulsed(connection, self._task.pulse), self.encoding)

    def getresp(self) -> str:
        """The server's answer."""
        self._task.pulse()
        return super().getresp()

    def enter(self) -> None:
        """Log in, without a credential as anonymous."""
        given = credential_of(self._task, self._endpoint)
        user, secret = (given.user, given.secret) if given else ("anonymous", "anonymous@")
        try:
            self.login(user, secret)
        except ftplib.error_perm:
            raise ModuleFailed(
                FAILED,
                f"{self.host} refuses the credential of {user!r}",
            ) from None
        if self._endpoint.scheme == "ftps":
            self.voidcmd("PBSZ 0")
            self.voidcmd("PROT P")
        self.voidcmd("TYPE I")

    def ntransfercmd(
        self, cmd: str, rest: int | str | None = None
    ) -> tuple[socket.socket, int | None]:
        """Open a passive connection to the address of this session."""
        assert self.sock is not None
        peer = self.sock.getpeername()[0]
        if self.af == socket.AF_INET:
            _, port = ftplib.parse227(self.sendcmd("PASV"))
        else:
            _, port = ftplib.parse229(self.sendcmd("EPSV"), self.sock.getpeername())
        data: Any = socket.create_connection((peer, port), timeout=self._task.conf.stall_s)
        try:
            if rest is not None:
                self.sendcmd(f"REST {rest}")
            answer = self.sendcmd(cmd)
            if answer[0] != "1":
                raise ftplib.error_reply(answer)
            if self._endpoint.scheme == "ftps":
                data = over_tls(data, self._endpoint.host)
        except BaseException:
            data.close()
            raise
        return data, None


@contextmanager
def _session(task: TransferTask, endpoint: Endpoint) -> Iterator[_Session]:
    """A session that was entered. Raises ModuleFailed for what the server refuses."""
    session = None
    try:
        session = _Session(task, endpoint)
        session.enter()
        yield session
    except ftplib.Error as error:
        raise ModuleFailed(FAILED, f"{endpoint.host}: {error}"[:500]) from None
    finally:
        if session is not None:
            session.close()


def _path(endpoint: Endpoint) -> str:
    path = unquote(endpoint.path)
    if CONTROL.search(path):
        raise ModuleFailed(FAILED, "control characters are not allowed in an address")
    return path


@contextmanager
def opened(task: TransferTask) -> Iterator[Source]:
    """The file at the source address. Raises ModuleFailed."""
    endpoint = endpoint_of(task.source_url, _PORTS)
    path = _path(endpoint)
    with _session(task, endpoint) as session:
        size, version = _size(session, path), ""
        with suppress(ftplib.Error):
            version = session.sendcmd(f"MDTM {path}")

        def begin(offset: int) -> tuple[int, Iterable[bytes]]:
            if offset and offset == size:
                return offset, ()
            data = session.transfercmd(f"RETR {path}", offset or None)
            return offset, _pieces(session, data)

        yield Source(begin, posixpath.basename(path), size, version=version)


def _size(session: _Session, path: str) -> int | None:
    try:
        return session.size(path)
    except ftplib.error_perm as error:
        # A server that does not know the command answers so as well; reading tells more.
        if str(error).startswith("550"):
            raise
        return None


def _pieces(session: _Session, data: socket.socket) -> Iterator[bytes]:
    with data:
        while piece := data.recv(CHUNK_BYTES):
            yield piece
    try:
        session.voidresp()
    except ftplib.error_temp as error:
        # It says that it broke off.
        raise ConnectionAbortedError(str(error)) from None


def write(reading: Reading) -> TransferResult:
    """Put the file at the destination address. Raises ModuleFailed."""
    endpoint = endpoint_of(reading.task.destination_url, _PORTS)
    path = _path(endpoint)
    if path.endswith("/"):
        path += reading.source.name
    folder, name = posixpath.split(path)
    with _session(reading.task, endpoint) as session:
        _make_folders(session, folder)
        for mark in earlier_marks(reading.task):
            with suppress(ftplib.error_perm):
                session.delete(_part(folder, name, mark))
        temporary = _part(folder, name, mark_of(reading.task))
        try:
            _store(session, temporary, reading)
            size = _size(session, temporary)
            if size is not None and size != reading.size_bytes:
                told = f"{endpoint.host} has {size} of {reading.size_bytes} bytes"
                raise ModuleFailed(FAILED, told)
            session.rename(temporary, path)
        except BaseException:
            with suppress(*_AT_THE_END):
                session.delete(temporary)
            raise
    return TransferResult(reading.size_bytes)


def _part(folder: str, name: str, mark: str) -> str:
    return posixpath.join(folder, f".{name[:150]}.{mark}.part")


def _store(session: _Session, path: str, reading: Reading) -> None:
    with session.transfercmd(f"STOR {path}") as data:
        for piece in reading:
            data.sendall(piece)
        if isinstance(data, ssl.SSLSocket):
            _end_tls(data)
        # Closed at once the connection would be reset where the server has said something that
        # nobody reads, such as tickets of sessions: what it has not read yet would be lost.
        with suppress(OSError):
            data.shutdown(socket.SHUT_WR)
        session.voidresp()


def _end_tls(data: ssl.SSLSocket) -> None:
    """Tell that all was sent; not every server tells the same, and its answer is what counts."""
    data.settimeout(min(data.gettimeout() or _GOODBYE_S, _GOODBYE_S))
    with suppress(OSError):
        data.unwrap()


def _make_folders(session: _Session, folder: str) -> None:
    parts = [part for part in folder.split("/") if part]
    for count in range(1, len(parts) + 1):
        # There already, or not allowed, which the next step tells.
        with suppress(ftplib.error_perm):
            session.mkd("/" + "/".join(parts[:count]))


def remove(task: TransferTask) -> TransferResult:
    """Remove the file at the source address; one that is gone is no fault. Raises ModuleFailed."""
    endpoint = endpoint_of(task.source_url, _PORTS)
    path = _path(endpoint)
    with _session(task, endpoint) as session:
        try:
            session.delete(path)
        except ftplib.error_perm as error:
            # The same code is for a file that is not there and for one that one may not delete.
            if not str(error).startswith("550") or _is_there(session, path):
                raise
    return TransferResult(None)


def _is_there(session: _Session, path: str) -> bool:
    try:
        session.size(path)
    except ftplib.error_perm:
        return False
    return True
