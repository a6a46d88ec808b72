"""Receivers of notices outside of the portal: a web server and a mail server, on loopback."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Hook:
    """A web server that keeps what is posted to it, and answers as it is told to."""

    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    #: Sent byte by byte with pauses, instead of an answer.
    trickles: bool = False
    #: The length of the answer.
    answer_bytes: int = 0
    received: list[Received] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    hook: Hook

    def do_POST(self) -> None:
        """Keep the request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.hook.received.append(Received(self.path, dict(self.headers), body))
        if self.hook.trickles:
            self._trickle()
            return
        self.send_response(self.hook.status)
        for name, value in self.hook.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(self.hook.answer_bytes))
        self.end_headers()
        try:
            for _ in range(self.hook.answer_bytes // 65_536):
                self.wfile.write(b"x" * 65_536)
        except OSError:
            self.close_connection = True

    def _trickle(self) -> None:
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.hook.is_over.wait(0.05):
                self.wfile.write(b"X-Slow: 1\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def hook() -> Iterator[Hook]:
    """A web server on loopback."""
    told = Hook()
    handler = type("Handler", (_Handler,), {"hook": told})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        told.url = f"http://127.0.0.1:{server.server_port}/in?token=hidden"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield told
        finally:
            told.is_over.set()
            server.shutdown()
            thread.join()


@dataclass
class Sink:
    """A mail server that keeps what it is sent; with `refuses` it takes nothing."""

    port: int = 0
    refuses: bool = False
    mails: list[Message] = field(default_factory=list)


class _Mailman(socketserver.StreamRequestHandler):
    sink: Sink

    def handle(self) -> None:
        """Speak as much SMTP as a client needs."""
        self._say("220 sink")
        while line := self.rfile.readline():
            word = line[:4].upper().strip()
            if word == b"DATA":
                self._take()
            elif word == b"MAIL" and self.sink.refuses:
                self._say("451 try later")
            else:
                self._say("221 bye" if word == b"QUIT" else "250 ok")

    def _take(self) -> None:
        self._say("354 go on")
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line)
        self.sink.mails.append(message_from_bytes(b"".join(lines)))
        self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def mail_sink() -> Iterator[Sink]:
    """A mail server on loopback."""
    sink = Sink()
    handler = type("Mailman", (_Mailman,), {"sink": sink})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        sink.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield sink
        finally:
            server.shutdown()
            thread.join()


def unused_port() -> int:
    """A port of loopback at which nobody listens."""
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        return int(server.server_address[1])


def now_s() -> int:
    """The time as senders stamp it."""
    return int(time.time())
