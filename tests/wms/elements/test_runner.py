from __future__ import annotations

import time

import pytest

from wms.elements.protocol import Unreachable
from wms.elements.runner import LocalRunner


def test_a_command_gets_its_input_and_gives_its_output_and_code() -> None:
    done = LocalRunner().run(["sh", "-c", "cat; echo bad >&2; exit 4"], stdin="in")

    assert (done.returncode, done.stdout, done.stderr) == (4, "in", "bad\n")


def test_a_command_that_takes_too_long_is_ended_with_its_children() -> None:
    started = time.monotonic()

    with pytest.raises(Unreachable, match=r"within 0\.3 s"):
        LocalRunner().run(["sh", "-c", "sleep 60 & wait"], timeout_s=0.3)

    assert time.monotonic() - started < 10


def test_a_command_that_does_not_exist_is_no_answer() -> None:
    with pytest.raises(Unreachable, match="no-such-command"):
        LocalRunner().run(["no-such-command"])


def test_bytes_that_are_no_text_do_not_break_the_answer() -> None:
    assert LocalRunner().run(["printf", r"a\377b"]).stdout == "a\ufffdb"
