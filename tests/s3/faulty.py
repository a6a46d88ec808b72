"""Store that answers as a test tells it: for faults that no real server makes when asked."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from wms.core.conf import BucketConf


@dataclass
class FaultyStore:
    """Answers that are given, the last one for ever; what was asked; connections."""

    answers: list[tuple[int, bytes]]
    port: int = 0
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    is_silent: bool = False
    #: Requests that a connection takes before it ends without a word.
    requests_each: int = 100

    @property
    def conf(self) -> BucketConf:
        """Its bucket, as settings name it."""
        url = f"http://127.0.0.1:{self.port}"
        return BucketConf(url, "runs", "", "us-east-1", "id", "secret", "", 300)


@contextmanager
def faulty_store(answers: Sequence[tuple[int, bytes]] = ((200, b""),)) -> Iterator[FaultyStore]:
    """A store that runs."""
    store, ends = FaultyStore(list(answers)), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            store.connections += 1
            self.left = store.requests_each

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            store.asked.append(f"{self.command} {self.path}")
            if store.is_silent:
                ends.wait()
                self.close_connection = True
                return
            status, body = store.answers[0] if len(store.answers) == 1 else store.answers.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)
            self.left -= 1
            self.close_connection = self.left == 0

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        store.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield store
        finally:
            ends.set()
            server.shutdown()
            thread.join()
