"""How an adapter runs a command: on this host now, on another one through the same interface."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from wms.elements.protocol import Unreachable


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended by itself."""

    returncode: int
    stdout: str
    stderr: str


class CommandRunner(Protocol):
    """Runs one command to its end."""

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60.0) -> Completed:
        """Return how the command ended; raise `Unreachable` if it did not run or took too long.

        The command sees a clean environment, none of the caller's descriptors and no terminal.
        """
        ...


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

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60.0) -> Completed:
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
        with process:
            try:
                stdout, stderr = process.communicate(stdin, timeout=timeout_s)
            except subprocess.TimeoutExpired as error:
                # Its whole session, else a grandchild that holds the pipes would keep us waiting.
                os.killpg(process.pid, signal.SIGKILL)
                raise Unreachable(f"{argv[0]}: no answer within {timeout_s:g} s") from error
        return Completed(process.returncode, stdout, stderr)
