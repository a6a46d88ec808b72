"""HTTP proxy between an agent and the real server: a network that fails as told.

It refuses requests, hangs up before or after the answer, or cuts or replaces the answer.
"""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

#: What may be done with a request: let it through, refuse it with this status, hang up before the
#: server hears of it, hang up after the server has answered or in the middle of its answer, or put
#: other bytes in place of the answer, perhaps made of it.
PASS, HANG_UP, LOSE_ANSWER, CUT_ANSWER = "pass", "hang up", "lose answer", "cut answer"
Fault = Callable[[str, str], str | int | bytes | Callable[[bytes], bytes]]


class FaultyProxy:
    """Forwards requests to `target`, except where `fault(method, path)` says otherwise.

    `target_of(method, path)` names the host and port of each, where there are several.
    """

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target).netloc
        self.fault: Fault = lambda method, path: PASS
        self.target_of: Callable[[str, str], str] = lambda method, path: self.target
        self.seen: list[tuple[str, str]] = []
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.proxy = self
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()

    def stop(self) -> None:
        """Refuse connections."""
        self._server.shutdown()
        self._server.server_close()

    def count(self, method: str, ending: str) -> int:
        """Number of requests that came whose path ends so."""
        return sum(1 for verb, path in self.seen if verb == method and path.endswith(ending))


class _Server(http.server.ThreadingHTTPServer):
    proxy: FaultyProxy
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def _handle(self) -> None:
        proxy = self.server.proxy
        proxy.seen.append((self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = proxy.fault(self.command, self.path)
        self.close_connection = True
        if fault == HANG_UP:
            return
        if isinstance(fault, int):
            self.send_error(fault)
            return
        target = proxy.target_of(self.command, self.path)
        connection = http.client.HTTPConnection(target, timeout=30)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if fault == LOSE_ANSWER:
            return
        if isinstance(fault, bytes):
            content = fault
        elif callable(fault):
            content = fault(content)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        if "Location" in answer.headers:
            self.send_header("Location", answer.headers["Location"])
        length = answer.headers["Content-Length"] if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content[:-1] if fault == CUT_ANSWER else content)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _handle

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""
