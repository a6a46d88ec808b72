"""Relay of connections from a payload's own network to the portal, its only way out.

A thread of the supervisor. The sockets it listens at are in the payload's network, those that it
opens in the node's; it does not look at what it carries.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

_CONNECT_LIMIT_S = 30.0
#: More connections at once wait until one is over.
_MOST_CONNECTIONS = 64
_PIECE_BYTES = 65536
_PAUSE_S = 0.1

_connection_slots = threading.BoundedSemaphore(_MOST_CONNECTIONS)


class PortalRelay:
    """Carries connections from one listening socket to a host and a port, and back."""

    def __init__(self, listener: socket.socket, host: str, port: int) -> None:
        self._listener = listener
        self._target = (host, port)

    def begin(self) -> None:
        """Run in a thread until the process ends."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            _connection_slots.acquire()
            try:
                inner, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(inner,), daemon=True).start()
            except (OSError, RuntimeError):
                # Of descriptors, or of threads, there are none left now.
                _connection_slots.release()
                time.sleep(_PAUSE_S)

    def _carry(self, inner: socket.socket) -> None:
        try:
            with inner, socket.create_connection(self._target, _CONNECT_LIMIT_S) as outer:
                outer.settimeout(None)
                _join(inner, outer)
        except (OSError, RuntimeError):
            # It is closed now on both sides, which tells the payload.
            return
        finally:
            _connection_slots.release()


def _join(one: socket.socket, other: socket.socket) -> None:
    """Carry data both ways until both sides have closed."""
    back = threading.Thread(target=_pump, args=(other, one), daemon=True)
    back.start()
    _pump(one, other)
    back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE_BYTES):
            sink.sendall(piece)
    # Also after a fault: the other side would wait for more.
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
        source.shutdown(socket.SHUT_RD)
