"""Live server whose threads stay, and with them their connections with the database.

Django's own makes a thread for each connection of a client, and so a session of PostgreSQL, which
costs more than most requests. A portal's threads stay too.
"""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import connections

#: So long a thread may take to end; one that waits for its client is left behind, as by Django.
_END_LIMIT_S = 5.0
_running: set[ServerWithThreads] = set()


def end_idle_threads() -> None:
    """Leave the database, which is about to be dropped."""
    for server in _running:
        server.end_idle_threads()


class _Thread(threading.Thread):
    """A thread that serves one connection of a client after the other."""

    def __init__(self, server: ServerWithThreads) -> None:
        super().__init__(daemon=True)
        self.given: SimpleQueue[tuple[Any, Any] | None] = SimpleQueue()
        self._server = server

    def run(self) -> None:
        while (given := self.given.get()) is not None:
            self._server.process_request_thread(*given)
            self._server.idle.append(self)
        connections.close_all()


class ServerWithThreads(ThreadedWSGIServer):
    """The last thread that became idle is the next to serve: few are ever needed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle: deque[_Thread] = deque()
        _running.add(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            thread = self.idle.pop()
        except IndexError:
            thread = _Thread(self)
            thread.start()
        thread.given.put((request, client_address))

    def _close_connections(self) -> None:
        """Keep what the thread's next request takes."""

    def end_idle_threads(self) -> None:
        """Close the connections of all threads that serve nobody."""
        while self.idle:
            thread = self.idle.pop()
            thread.given.put(None)
            thread.join(_END_LIMIT_S)

    def server_close(self) -> None:
        _running.discard(self)
        self.end_idle_threads()
        super().server_close()
