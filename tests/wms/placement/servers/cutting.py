"""Relay to a server of this host, which ends connections after so many bytes of answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_PIECE = 64 * 1024


@dataclass
class Relay:
    """The relay's port, and how many connections it still ends."""

    target: int
    port: int = 0
    cuts: int = 0
    cut_after: int = 0
    sockets: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        """Relay connections until the listener is closed."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            limit = None
            if self.cuts:
                self.cuts, limit = self.cuts - 1, self.cut_after
            self.sockets += [client, server]
            for source, sink, most in ((client, server, None), (server, client, limit)):
                thread = threading.Thread(target=_pass, args=(source, sink, most), daemon=True)
                thread.start()
                self.threads.append(thread)

    def close(self) -> None:
        """End what is left."""
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for each in self.sockets:
            each.close()


def _pass(source: socket.socket, sink: socket.socket, most: int | None) -> None:
    passed = 0
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
            passed += len(piece)
            if most is not None and passed >= most:
                break
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    """A relay that runs."""
    relay = Relay(port)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay.port = listener.getsockname()[1]
        thread = threading.Thread(target=relay.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            relay.close()
