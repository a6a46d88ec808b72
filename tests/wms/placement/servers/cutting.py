"""Relay to a server of this host that a test cuts, stops in the middle, or takes away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

_PIECE = 64 * 1024


@dataclass
class Relay:
    """The relay's port, and what it does to connections: `of` says which side's bytes count."""

    target: int
    port: int = 0
    #: It ends so many connections after so many bytes.
    cuts: int = 0
    cut_after: int = 0
    #: After so many bytes nothing comes any more, until `resumed`.
    stall_after: int | None = None
    of: Literal["answers", "requests"] = "answers"
    #: Bytes of that side that were passed on.
    passed: int = 0
    stalled: threading.Event = field(default_factory=threading.Event)
    resumed: threading.Event = field(default_factory=threading.Event)
    listeners: list[socket.socket] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def forget(self) -> None:
        """Pass everything on, as at the beginning."""
        self.cuts = self.passed = 0
        self.stall_after, self.of = None, "answers"
        self.resumed.set()
        self.stalled, self.resumed = threading.Event(), threading.Event()

    def listen(self, target: int, port: int = 0) -> int:
        """Lead another port to a port of the server; its number."""
        listener = socket.create_server(("127.0.0.1", port))
        self.listeners.append(listener)
        self._start(self._serve, listener, target)
        return int(listener.getsockname()[1])

    def _start(self, call: object, *given: object) -> None:
        thread = threading.Thread(target=call, args=given, daemon=True)  # type: ignore[arg-type]
        thread.start()
        self.threads.append(thread)

    def _serve(self, listener: socket.socket, target: int) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", target))
            except OSError:
                client.close()
                continue
            self.sockets += [client, server]
            ended = threading.Barrier(2, lambda ends=(client, server): _close(*ends))
            self._start(self._pass_and_close, client, server, "requests", ended)
            self._start(self._pass_and_close, server, client, "answers", ended)

    def _pass_and_close(
        self, source: socket.socket, sink: socket.socket, side: str, ended: threading.Barrier
    ) -> None:
        self._pass(source, sink, side)
        # A server of one thread would write on into a connection that is only shut down.
        ended.wait()

    def _pass(self, source: socket.socket, sink: socket.socket, side: str) -> None:
        passed = 0
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                sink.sendall(piece)
                if side != self.of:
                    continue
                passed += len(piece)
                self.passed += len(piece)
                if self.cuts and passed >= self.cut_after:
                    self.cuts -= 1
                    break
                if self.stall_after is not None and passed >= self.stall_after:
                    self.stalled.set()
                    self.resumed.wait(30)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nothing listens at the port."""
        self._close_listeners()
        try:
            yield
        finally:
            self.listen(self.target, self.port)

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.listeners.clear()

    def close(self) -> None:
        """End what is left."""
        self.resumed.set()
        self._close_listeners()
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()


def _close(*ends: socket.socket) -> None:
    for each in ends:
        each.close()


@contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    """A relay that runs."""
    relay = Relay(port)
    relay.port = relay.listen(port)
    try:
        yield relay
    finally:
        relay.close()
