"""FTP server (pyftpdlib) of a folder, with one user and, to read, anybody; over TLS if wanted."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pyftpdlib", reason="pyftpdlib is not installed")
pytest.importorskip("OpenSSL", reason="pyOpenSSL is not installed")

with warnings.catch_warnings():
    # It stands on modules of Python 3.11 that later ones do not have, and brings them there.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import DTPHandler, FTPHandler, TLS_DTPHandler, TLS_FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer


@dataclass
class FtpSite:
    """The server's port, and how many transfers it breaks off after about so many bytes."""

    folder: Path
    port: int = 0
    cuts: int = 0
    cut_after: int = 100_000
    scheme: str = "ftp"
    #: Over TLS it closes connections for data without a word.
    is_curt: bool = False
    #: Leads connections for data to a port of the server: its own one, or another.
    lead: Callable[[int], int] = lambda port: port

    def url(self, path: str) -> str:
        """Address of a path."""
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"


def _led(answer: str, lead: Callable[[int], int]) -> str:
    """The answer to PASV, with the port that leads to the one that it names."""
    if not answer.startswith("227 "):
        return answer
    *address, high, low = re.findall(r"\d+", answer)[1:]
    port = lead(int(high) * 256 + int(low))
    numbers = ",".join((*address, str(port // 256), str(port % 256)))
    return f"227 Entering passive mode ({numbers})."


def _handler(site: FtpSite, people: DummyAuthorizer, certificate: Path | None) -> type[FTPHandler]:
    class Transfer(TLS_DTPHandler if certificate else DTPHandler):
        def send(self, data: bytes) -> int:
            if site.cuts and self.tot_bytes_sent > site.cut_after:
                site.cuts -= 1
                self.cmd_channel.close()
                self.close()
                return 0
            return super().send(data)

        def close(self) -> None:
            if site.is_curt:
                self._ssl_established = False
            super().close()

    class Handler(TLS_FTPHandler if certificate else FTPHandler):
        authorizer = people
        dtp_handler = Transfer
        use_sendfile = False
        auth_failed_timeout = 0
        certfile = str(certificate)
        tls_control_required = tls_data_required = True

        def respond(self, resp: str, **how: object) -> None:
            super().respond(_led(resp, site.lead), **how)

    return Handler


@contextmanager
def ftp_server(
    folder: Path, *, anonymous: str = "elradfmwMT", certificate: Path | None = None
) -> Iterator[FtpSite]:
    """A server that runs; anybody may do what the letters of `anonymous` stand for.

    With a certificate it wants TLS on both connections.
    """
    site = FtpSite(folder, scheme="ftps" if certificate else "ftp")
    people = DummyAuthorizer()
    people.add_user("alice", "secret", str(folder), perm="elradfmwMT")
    if anonymous:
        with warnings.catch_warnings():
            # That anybody may write is told, and meant.
            warnings.simplefilter("ignore", RuntimeWarning)
            people.add_anonymous(str(folder), perm=anonymous)

    server = FTPServer(("127.0.0.1", 0), _handler(site, people, certificate), ioloop=IOLoop())
    site.port = server.address[1]
    ends = threading.Event()

    def serve() -> None:
        while not ends.is_set():
            server.ioloop.loop(timeout=0.02, blocking=False)
        server.close_all()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        ends.set()
        thread.join()
