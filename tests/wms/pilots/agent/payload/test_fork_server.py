"""Fork server of supervisors: it is killed, stopped, or out of processes."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from wms.pilots.agent.payload import fork_server
from wms.pilots.agent.payload.fork_server import ForkServer, Supervisor
from wms.pilots.agent.supervisor import main

pytestmark = pytest.mark.process


@pytest.fixture
def here() -> Iterator[ForkServer]:
    here = ForkServer()
    end(here.supervisor([]))
    yield here
    here._discard()


def end(supervisor: Supervisor) -> None:
    supervisor.orders.close()
    assert supervisor.answers.read() == b""
    supervisor.answers.close()


def process_of(here: ForkServer) -> int:
    assert here._process is not None
    return here._process.pid


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_a_process_that_somebody_has_stopped_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fork_server, "ANSWERS_WITHIN_S", 5.0)
    here = ForkServer()
    end(here.supervisor([]))
    stopped = process_of(here)
    os.kill(stopped, signal.SIGSTOP)

    end(here.supervisor([]))

    assert process_of(here) != stopped
    here._discard()


def test_without_room_for_descriptors_no_supervisor_begins(here: ForkServer) -> None:
    resource.prlimit(process_of(here), resource.RLIMIT_NOFILE, (5, 5))
    before = descriptors_of(os.getpid())

    with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        here.supervisor([1])

    assert descriptors_of(os.getpid()) == before


def test_no_descriptor_is_left_open_by_many_supervisors_and_those_that_were_lost(
    here: ForkServer,
) -> None:
    ours, theirs = descriptors_of(os.getpid()), descriptors_of(process_of(here))

    for _ in range(20):
        end(here.supervisor([1, 2]))
    assert descriptors_of(process_of(here)) == theirs

    os.kill(process_of(here), signal.SIGKILL)
    end(here.supervisor([1, 2]))
    assert (descriptors_of(os.getpid()), descriptors_of(process_of(here))) == (ours, theirs)


def keeping(wake_up: int = 0) -> main._Supervision:
    order = {"signal_argv": ["/bin/true"], "environment": {}}
    return main._Supervision(order, None, 0, wake_up)  # type: ignore[arg-type]


def test_a_supervisor_goes_on_where_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(main.os, "fork", fork)

    keeping()._signal_by_program("KILL")


def test_a_supervisor_rests_while_it_waits_for_what_will_not_die(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.write(writer, b"!")
    rounds = iter([True] * 6)
    waiting = keeping(reader)
    monkeypatch.setattr(waiting, "_reap", lambda: next(rounds, False))
    monkeypatch.setattr(waiting, "_kill_below", lambda: None)

    waiting._end_all()

    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    os.close(reader)
    os.close(writer)
