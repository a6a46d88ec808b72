"""Answers of programs of the node: asked with a time limit, read up to a bound, never waited for.

A program that hangs is killed with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO

#: Bytes of an answer that are read.
MOST_OUTPUT_BYTES = 64 * 1024
_ERROR_LENGTH = 200
_REAP_S = 2.0


class NoAnswer(Exception):
    """A program of the node gave no answer. `is_absent`: the node does not have it."""

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason[:_ERROR_LENGTH])
        self.is_absent = is_absent


def answer_of(command: Sequence[str], timeout_s: float) -> str:
    """Output of a program, its errors included. Raises NoAnswer.

    One that prints more than `MOST_OUTPUT_BYTES` gave no answer, and is killed at once.
    """
    until = time.monotonic() + timeout_s
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        is_absent = isinstance(error, FileNotFoundError)
        raise NoAnswer(f"{command[0]}: {error.strerror}", is_absent=is_absent) from error
    assert process.stdout is not None
    try:
        content = _read(process.stdout, until, command[0])
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise NoAnswer(f"{command[0]}: not over after {timeout_s:g} s") from error
    finally:
        _kill(process)
    text = content.decode("utf-8", "replace")
    if process.returncode != 0:
        words = " ".join(text.split())
        raise NoAnswer(f"{command[0]}: exit code {process.returncode}: {words}")
    return text


def _read(stream: IO[bytes], until: float, name: str) -> bytes:
    """All that comes before the end of the stream; raises TimeoutExpired or NoAnswer."""
    content = b""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    while True:
        left_s = until - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            raise subprocess.TimeoutExpired(name, 0)
        piece = os.read(stream.fileno(), MOST_OUTPUT_BYTES)
        if not piece:
            return content
        content += piece
        if len(content) > MOST_OUTPUT_BYTES:
            raise NoAnswer(f"{name}: printed more than {MOST_OUTPUT_BYTES} bytes")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
    if process.stdout is not None:
        process.stdout.close()
