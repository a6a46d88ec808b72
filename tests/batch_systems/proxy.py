"""TCP proxy before a real service on a loopback port: it can hang, cut, garble or refuse."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from enum import StrEnum, auto
from types import TracebackType

_PIECE_BYTES = 65536


class LineFault(StrEnum):
    """What happens to what the service answers."""

    #: It never arrives, and the connection stays.
    HANG = auto()
    #: The connection ends after `cut_after_bytes`.
    CUT = auto()
    #: Every byte after the first `cut_after_bytes` is another.
    GARBLE = auto()
    #: Nobody listens: the connection is closed at once.
    DOWN = auto()


class BadLine:
    """Passes connections on to `target_port`; `fault` may be changed at any time."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self.fault: LineFault | None = None
        self.cut_after_bytes = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> BadLine:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in (self._listener, *self._open):
            _close(each)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            if self.fault == LineFault.DOWN:
                _close(client)
                continue
            service = socket.create_connection(("127.0.0.1", self._target_port))
            self._open.append(service)
            for source, target, is_answer in ((client, service, False), (service, client, True)):
                thread = threading.Thread(target=self._pass_on, args=(source, target, is_answer))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        passed_bytes = 0
        with suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                if is_answer and self.fault:
                    good = piece[: max(0, self.cut_after_bytes - passed_bytes)]
                    if self.fault == LineFault.GARBLE:
                        good += bytes(byte ^ 0x55 for byte in piece[len(good) :])
                    if good:
                        target.sendall(good)
                    if self.fault == LineFault.CUT and len(good) < len(piece):
                        break
                else:
                    target.sendall(piece)
                passed_bytes += len(piece)
        if not (is_answer and self.fault == LineFault.HANG):
            _close(source)
            _close(target)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
