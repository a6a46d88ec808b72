"""Servers of SFTP that do not keep to the protocol: they get no memory and no time for it."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from wms.placement.conf import placement_conf
from wms.placement.modules.protocol import TIME_IS_OVER, ModuleFailed, TransferTask
from wms.placement.modules.sftp_protocol import PIECE_BYTES, Sftp
from wms.placement.modules.ssh_session import Session
from wms.placement.request_ad import Checksums

_VERSION, _DATA = 2, 103


@dataclass
class Server:
    """The other ends of a session's pipes, and whether the time of the attempt is over."""

    answers: int
    words: int
    session: Session = field(init=False)
    is_over: bool = False

    def pulse(self) -> None:
        """Have the time of the attempt be over, or not."""
        if self.is_over:
            raise ModuleFailed(TIME_IS_OVER, "its time is over")

    def send(self, kind: int, body: bytes) -> None:
        """Send an answer."""
        os.write(self.answers, struct.pack(">IB", 1 + len(body), kind) + body)

    def send_piece(self, number: int, piece: bytes) -> None:
        """Send the answer to a read."""
        self.send(_DATA, struct.pack(">II", number, len(piece)) + piece)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose answers a test writes beforehand."""
    pipes = [os.pipe() for _ in range(3)]
    (_, into), (source, answers), (heard, words) = pipes
    made = Server(answers, words)
    task = TransferTask(
        1, "sftp://h/x", "file:x", "", 1, "", Checksums(), None, placement_conf(), made.pulse
    )
    made.session = Session(task, into, source, heard)
    yield made
    for each in pipes:
        for end in each:
            os.close(end)


@pytest.mark.parametrize(
    "send",
    [
        lambda server: server.send_piece(999, b"x"),
        lambda server: server.send_piece(1, b"x" * (PIECE_BYTES + 1)),
        lambda server: [server.send_piece(2, b"x") for _ in range(2)],
    ],
    ids=["under another number", "more", "twice"],
)
def test_what_was_not_asked_for_is_refused(server: Server, send: Callable[[Server], None]) -> None:
    server.send(_VERSION, struct.pack(">I", 3))
    send(server)
    server.send_piece(1, b"x" * 10)

    with pytest.raises(ConnectionAbortedError, match="asked for"):
        next(Sftp(server.session).read(b"handle", 0))


def test_bytes_that_come_one_by_one_have_a_pulse_each(server: Server) -> None:
    server.is_over = True
    os.write(server.answers, b"x")
    # Nothing comes behind it: the other end is closed.
    os.dup2(server.words, server.answers)

    with pytest.raises(ModuleFailed):
        server.session.receive(2)


def test_of_what_is_said_the_beginning_stays(server: Server) -> None:
    os.write(server.words, b"refused" + b"!" * 50_000)

    said = server.session.said()

    assert said.startswith("refused")
    assert len(said) < 5000
