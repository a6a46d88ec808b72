"""HTTP server with ranges, PUT and DELETE, whose answers a test can spoil."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PIECE = 64 * 1024


@dataclass
class HttpServer:
    """Content of the server, and its faults."""

    files: dict[str, bytes] = field(default_factory=dict)
    port: int = 0
    #: It ends so many connections after half of what was asked for.
    cuts: int = 0
    #: It says nothing after half, until it is stopped.
    stalls: bool = False
    #: One byte of what it sends is another.
    corrupts: bool = False
    #: It has no room for what is sent.
    is_full: bool = False
    #: From a path to an address.
    redirects: dict[str, str] = field(default_factory=dict)
    #: `user:password`.
    password: str = ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    #: Of these one is enough, in place of the password.
    tokens: set[str] = field(default_factory=set)
    #: It keeps connections, and counts them.
    keeps: bool = False
    connections: int = 0
    credentials: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str) -> str:
        """Address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"


class Handler(BaseHTTPRequestHandler):
    """Handler of the requests of a site."""

    protocol_version = "HTTP/1.1"
    site: HttpServer

    def log_message(self, *_: object) -> None:
        return

    def setup(self) -> None:
        super().setup()
        self.site.connections += 1

    def begin(self) -> bool:
        """Note the request; False when it was answered already."""
        site = self.site
        site.requests.append((self.command, self.path, self.headers.get("Range", "")))
        shown = self.headers.get("Authorization", "")
        site.credentials.append(shown)
        self.close_connection = not site.keeps
        if not self._lets_in(shown):
            self.answer(401)
            return False
        if self.path in site.redirects:
            self.answer(302, {"Location": site.redirects[self.path]})
            return False
        return True

    def _lets_in(self, shown: str) -> bool:
        site = self.site
        if shown.removeprefix("Bearer ") in site.tokens:
            return True
        if not site.password:
            return not site.tokens
        return shown == f"Basic {base64.b64encode(site.password.encode()).decode()}"

    def answer(
        self, status: int, headers: dict[str, str] | None = None, size: int | None = 0
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if size is not None:
            self.send_header("Content-Length", str(size))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def do_GET(self) -> None:
        if not self.begin():
            return
        content = self.site.files.get(self.path)
        if content is None:
            self.answer(404)
            return
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Accept-Ranges": "bytes"}
        status, begin = 200, 0
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if found and self.headers.get("If-Range", tag) == tag:
            status, begin = 206, int(found[1])
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        part = content[begin:]
        self.answer(status, headers, len(part))
        if self.command == "GET":
            self._send(part)

    do_HEAD = do_GET

    def _send(self, part: bytes) -> None:
        site = self.site
        if site.corrupts and part:
            part = part[:-1] + bytes([part[-1] ^ 1])
        until = len(part)
        if site.cuts or site.stalls:
            until = len(part) // 2
        for at in range(0, until, _PIECE):
            self.wfile.write(part[at : min(at + _PIECE, until)])
        self.wfile.flush()
        if site.stalls:
            site.stopped.wait(30)
        if site.cuts:
            site.cuts -= 1

    def do_PUT(self) -> None:
        if not self.begin():
            return
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            wanted = int(self.headers["Content-Length"])
            content = self.rfile.read(wanted)
            if len(content) < wanted:
                return
        if self.site.is_full:
            self.answer(507)
            return
        self.site.files[self.path] = content
        self.answer(201)

    def do_DELETE(self) -> None:
        if self.begin():
            self.answer(204 if self.site.files.pop(self.path, None) is not None else 404)


class _Threads(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients end connections as they like."""


@contextmanager
def http_server(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    """A server that runs, over TLS where that is given."""
    site = HttpServer()
    with serving(site, Handler, port, tls):
        yield site


@contextmanager
def serving(
    site: HttpServer, kind: type[Handler], port: int, tls: ssl.SSLContext | None
) -> Iterator[None]:
    """Serve a site by handlers of a kind."""
    handler = type("OfSite", (kind,), {"site": site})
    with _Threads(("127.0.0.1", port), handler) as server:
        site.port = server.server_address[1]
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            site.stopped.set()
            server.shutdown()
            thread.join()
