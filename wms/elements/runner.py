"""Command runner of elements on this host, with a time limit; `wms.elements.ssh` has the other.

Also the protocol of both, the time left of an adapter's call, the clean environment of commands,
and the check that no signal has ended one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from wms.elements.protocol import Unreachable

#: Control loops ask one batch system after another within a minute: none may use it up alone.
TIMEOUT_S = 10.0
#: A task makes two calls at least, within 240 s.
LONGEST_TIMEOUT_S = 100
#: Seconds to wait for a killed command; one in the hands of a dead file server does not go.
_DEATH_S = 1.0
#: Base of a shell's exit code for a command that a signal has ended, to which its number adds.
_SIGNAL_BASE, _MOST_SIGNALS = 128, 64


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended by itself."""

    returncode: int
    stdout: str
    stderr: str


class CommandRunner(Protocol):
    """Runs one command to its end."""

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S
    ) -> Completed:
        """Return how the command ended; raise `Unreachable` if it did not run or took too long.

        One that a signal has ended may have done its work or not: `Unreachable` too.
        After any exception, also one that interrupts the caller, the command is gone; one on
        another host ends within the time at the latest.
        The command sees a clean environment, none of the caller's descriptors and no terminal.
        """
        ...


class TimeLimit:
    """Time left of one call of an adapter, for all of its commands."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left_s(self) -> float:
        """Return the seconds that are left; raise `Unreachable` when there are none."""
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise Unreachable(f"not done within {self._seconds:g} s")
        return left_s


def clean_environment() -> dict[str, str]:
    """Return the few variables a command on this host needs; none comes from our own environment.

    The directory of our interpreter is last in PATH, so that a host whose only Python is not in
    the system's folders can still start a pilot.
    """
    return {
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{sys.base_prefix}/bin",
        "HOME": "/",
        "LANG": "C.UTF-8",
    }


class LocalRunner:
    """Runs commands on this host, as the account of this process."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(clean_environment() if environment is None else environment)

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S
    ) -> Completed:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                cwd="/",
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable(f"{argv[0]}: {error}") from error
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise Unreachable(f"{argv[0]}: no answer within {timeout_s:.3g} s") from error
        except BaseException:
            # The time limit of the task that called us, or the end of this process.
            _kill(process)
            raise
        check_not_killed(argv[0], process.returncode)
        return Completed(process.returncode, stdout, stderr)


def check_not_killed(command: str, returncode: int) -> None:
    """Raise `Unreachable` when a signal has ended the command, or what it has run."""
    number = -returncode if returncode < 0 else returncode - _SIGNAL_BASE
    if 0 < number <= _MOST_SIGNALS:
        raise Unreachable(f"{command}: ended by signal {number}")


def _kill(process: subprocess.Popen[str]) -> None:
    """End a command with its whole session: a grandchild may hold the pipes or go on working."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DEATH_S)
