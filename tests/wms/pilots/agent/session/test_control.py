"""Requests to a pilot's threads, and heartbeats that go on whatever happens."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wms.pilots.agent.conftest import wait_until
from wms.pilots.agent.__main__ import listen_to_signals
from wms.pilots.agent.control import Control, Waker
from wms.pilots.agent.server.client import Client
from wms.pilots.agent.server.log_upload import LogUploader
from wms.pilots.agent.server.report_spool import ReportSpool
from wms.pilots.agent.session.heartbeat import Heartbeats
from wms.pilots.agent.session.told_time import ToldTime


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """As of a pilot with hundreds of jobs: more than a set of select() can hold."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 1200:
        pytest.skip("this account may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 1200), before[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for each in opened:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_bell_is_heard_in_a_pilot_that_has_very_many_files_open(many_open_files: None) -> None:
    waker = Waker()
    waker.wake()

    waker.wait(None)
    waker.wait(0.0)


@pytest.fixture
def handlers_afterwards() -> Iterator[None]:
    """Handlers of signals as they were, after the test."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGURG)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_that_has_come_is_heeded_by_any_thread_that_asks(
    handlers_afterwards: None, name: str
) -> None:
    control = Control()
    listen_to_signals(control)
    seen: list[bool] = []

    def look() -> None:
        os.kill(os.getpid(), getattr(signal, name))
        control.heed_signals()
        seen.append(control.is_terminated)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert (seen, control.is_preempted) == ([True], name != "SIGINT")


def test_a_heartbeat_that_goes_wrong_is_not_the_last_one(tmp_path: Path) -> None:
    control = Control()
    control.add_attempt((1, 1))
    client = Client("http://127.0.0.1:1", "pilot", "token", control)
    asked: list[int] = []

    def jobs() -> None:
        asked.append(1)
        raise RuntimeError("nobody thought of this")

    heartbeats = Heartbeats(
        client,
        control,
        every_s=0.01,
        work_dir=tmp_path,
        jobs=jobs,
        told_time=ToldTime(control, started=0.0, environment={}),
        spool=ReportSpool(tmp_path / "spool", client=client, control=control),
        log_uploader=LogUploader(client, tmp_path / "log"),
    )

    heartbeats.start()

    wait_until(lambda: len(asked) > 1, "it beats on")
    heartbeats.stop()


@pytest.mark.parametrize("wish", ["terminate", "preempt", "drain", "lock_out"])
def test_a_wish_to_end_cuts_off_what_is_waited_for(wish: str) -> None:
    control = Control()
    ours, theirs = socket.socketpair()
    with ours, theirs, control.cancellable(ours):
        getattr(control, wish)()

        assert ours.recv(1) == b""


def test_who_is_to_end_does_not_begin_to_wait() -> None:
    control = Control()
    control.drain()
    ours, theirs = socket.socketpair()

    with ours, theirs, control.cancellable(ours):
        assert ours.recv(1) == b""


def test_a_question_is_given_up_when_the_pilot_is_to_end() -> None:
    control = Control()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}", "p", "t", control)
        answers: list[object] = []
        asking = threading.Thread(target=lambda: answers.append(client.long_poll("claim", {})))
        asking.start()
        connection, _ = server.accept()
        with connection:
            connection.recv(10_000)
            control.drain("enough")
            asking.join()

    assert answers == [None]
