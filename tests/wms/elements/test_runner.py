from __future__ import annotations

import inspect
import os
import signal
import time
from pathlib import Path

import pytest

from tests.wms.pilots.agent.payload.test_execution import wait_until_gone
from wms.elements.protocol import Unreachable
from wms.elements.runner import CommandRunner, LocalRunner

pytestmark = pytest.mark.process


def test_a_command_gets_its_input_and_gives_its_output_and_code() -> None:
    done = LocalRunner().run(["sh", "-c", "cat; echo bad >&2; exit 4"], stdin="in")

    assert (done.returncode, done.stdout, done.stderr) == (4, "in", "bad\n")


def test_a_command_that_takes_too_long_is_ended_with_its_children() -> None:
    started = time.monotonic()

    with pytest.raises(Unreachable, match=r"within 0\.3 s"):
        LocalRunner().run(["sh", "-c", "sleep 60 & wait"], timeout_s=0.3)

    assert time.monotonic() - started < 10


class OutOfTime(Exception):
    """What a task's own time limit raises, whatever the task is at."""


def test_a_caller_that_is_interrupted_takes_its_command_with_it(tmp_path: Path) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGUSR1, interrupt)
    started = time.monotonic()
    # It reads first, so the interruption does not come before the runner is waiting for it.
    command = f"read _; sleep 30 & echo $! >{tmp_path}/pid; kill -s USR1 {os.getpid()}; wait"

    try:
        with pytest.raises(OutOfTime):
            LocalRunner().run(["sh", "-c", command], stdin="go\n")
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert time.monotonic() - started < 10
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_one_command_cannot_use_up_the_time_of_a_control_loop() -> None:
    limits_s = [
        inspect.signature(kind.run).parameters["timeout_s"].default
        for kind in (CommandRunner, LocalRunner)
    ]

    assert limits_s == [10.0, 10.0]


def test_a_command_that_does_not_exist_is_no_answer() -> None:
    with pytest.raises(Unreachable, match="no-such-command"):
        LocalRunner().run(["no-such-command"])


def test_bytes_that_are_no_text_do_not_break_the_answer() -> None:
    assert LocalRunner().run(["printf", r"a\377b"]).stdout == "a\ufffdb"
