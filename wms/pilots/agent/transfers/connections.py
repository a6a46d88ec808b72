"""HTTP connections to other hosts than the server: to checked addresses, directly, with limits.

A name is resolved once, all of its addresses are checked, and the connection is made to a checked
address. While it waits, a request to end the job is heeded. Proxies of the node are not used: the
address that they connect to cannot be checked.
"""

from __future__ import annotations

import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from .rules import TransferBroken, TransferRefused, TransferRules

PORTS = {"http": 80, "https": 443}
_CONNECT_S = 15.0
#: Longest time of a wait, after which it is looked whether the job is still wanted.
_SLICE_S = 0.25
#: Least time between two such looks: each takes as long as some KiB take to come.
_CHECK_S = 0.1
#: Errors of a socket that has nothing more at the moment.
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

#: Raises an exception once the transfer is to end.
Check = Callable[[], None]


def parsed(url: str) -> SplitResult:
    """A URL in parts. Raises TransferRefused for one that is none, or of another scheme."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
        is_good = is_good and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        is_good = False
    if not is_good:
        raise TransferRefused("its address is no URL of HTTP")
    return parts


class PatientSocket:
    """A connected socket for `http.client`, whose waits are bounded and look at `check`.

    Closing it does nothing, since answers are read after their connection is closed: `end` does.
    """

    def __init__(self, plain: Any, *, stall_s: float, check: Check) -> None:
        plain.setblocking(False)
        self._socket = plain
        self._stall_s = stall_s
        self._check = check
        self._checks_from_s = 0.0
        # What the last read has found after its bytes: an end, or the words of an error.
        self._is_over = False
        self._fault = ""

    def sendall(self, content: Any) -> None:
        """Send all of it, as long as something goes."""
        left = memoryview(content).cast("B")
        while left:
            sent = self._patiently(self._socket.send, left, select.POLLOUT)
            left = left[sent:]

    def recv_into(self, buffer: Any) -> int:
        """Wait for what comes next, and read all that has come, as far as there is room.

        TLS gives 16 KiB at once, for each of which the callers would pay.
        """
        if self._fault:
            raise TransferBroken(self._fault)
        if self._is_over:
            return 0
        view = memoryview(buffer)
        filled = self._patiently(self._socket.recv_into, view, select.POLLIN)
        while 0 < filled < len(view):
            count = self._read_at_once(view[filled:])
            if not count:
                break
            filled += count
        return filled

    def _read_at_once(self, buffer: memoryview) -> int:
        """Read without a wait; zero where nothing has come. The next read tells of an end."""
        try:
            count = int(self._socket.recv_into(buffer))
        except _NOT_NOW:
            return 0
        except OSError as error:
            self._fault = _broken_off(error)
            return 0
        self._is_over = not count
        return count

    def _patiently(self, step: Callable[[Any], int], buffer: Any, event: int) -> int:
        since = time.monotonic()
        while True:
            self._check_at_times()
            try:
                return step(buffer)
            except BlockingIOError:
                wanted = event
            except ssl.SSLWantReadError:
                wanted = select.POLLIN
            except ssl.SSLWantWriteError:
                wanted = select.POLLOUT
            except OSError as error:
                # Not to be taken for one of the node's disk.
                raise TransferBroken(_broken_off(error)) from error
            if not self._becomes_ready(wanted) and time.monotonic() - since > self._stall_s:
                raise TransferBroken(f"nothing moved for {self._stall_s:g} s")

    def _check_at_times(self) -> None:
        """Look whether the transfer is still wanted, where that was not done a moment ago."""
        now = time.monotonic()
        if now >= self._checks_from_s:
            self._check()
            self._checks_from_s = now + _CHECK_S

    def _becomes_ready(self, event: int) -> bool:
        """Wait a moment for an event of the socket; tell whether it came."""
        # Not select(): that fails once a pilot of very many jobs has more than 1023 files open.
        poll = select.poll()
        poll.register(self._socket.fileno(), event)
        return bool(poll.poll(_SLICE_S * 1000))

    def makefile(self, mode: str, *_: Any, **__: Any) -> io.BufferedReader:
        """The answers as a file."""
        return io.BufferedReader(_Received(self), 64 * 1024)

    def close(self) -> None:
        """Nothing: see above."""

    def end(self) -> None:
        """Close the socket."""
        self._socket.close()


def _broken_off(error: OSError) -> str:
    return f"the connection broke off: {error}"


class _Received(io.RawIOBase):
    def __init__(self, source: PatientSocket) -> None:
        super().__init__()
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        return self._source.recv_into(buffer)


class Connection(http.client.HTTPConnection):
    """A connection to a checked address of the host of a URL; a context that closes it."""

    def __init__(self, parts: SplitResult, rules: TransferRules, check: Check) -> None:
        port = parts.port or PORTS[parts.scheme]
        super().__init__((parts.hostname or "").lower(), port)
        self._is_secure = parts.scheme == "https"
        self._rules = rules
        self._check = check
        self._patient: PatientSocket | None = None
        # As `http.client` writes Host: without a usual port.
        self.default_port = PORTS[parts.scheme]

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        if self._patient is not None:
            self._patient.end()

    def connect(self) -> None:
        """Connect. Raises TransferRefused and TransferBroken."""
        plain = self._connected()
        try:
            if self._is_secure:
                plain = _over_tls(plain, self.host)
        except BaseException:
            plain.close()
            raise
        self._patient = PatientSocket(plain, stall_s=self._rules.stall_s, check=self._check)
        self.sock = self._patient

    def _connected(self) -> socket.socket:
        fault = ""
        for address in self._addresses():
            self._check()
            try:
                timeout_s = min(_CONNECT_S, self._rules.stall_s)
                return socket.create_connection((address, self.port), timeout=timeout_s)
            except OSError as error:
                fault = error.strerror or str(error)
        raise TransferBroken(f"{self.host}:{self.port} cannot be reached: {fault}")

    def _addresses(self) -> list[str]:
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise TransferBroken(f"{self.host} is not known on this node") from error
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        if not all(self._rules.may_reach(self.host, each) for each in addresses):
            raise TransferRefused(
                f"{self.host} is not at a public address; an administrator may allow it "
                "(PILOTAGE_PLACEMENT_ALLOWED)"
            )
        return addresses


def _over_tls(plain: socket.socket, host: str) -> ssl.SSLSocket:
    """The connection by TLS, where the other side has to prove its name."""
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        # The node may lack the authority that others know.
        raise TransferBroken(
            f"the certificate of {host} was refused: {error.verify_message}"
        ) from None
    except OSError as error:
        raise TransferBroken(f"{host}: {error}") from error
