"""Progress of a starting portal: programs append a line for each step, a waiting process reads.

The timeout begins anew with every step: a slow machine is no failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from portal.cli.state_directory import StateDirectory


class Stalled(Exception):
    """No step advanced for too long; the text names the last one."""


class Steps:
    """Lines of one start, in their order."""

    def __init__(self, state_dir: StateDirectory) -> None:
        self._file = state_dir.run / "steps"

    def begin(self) -> None:
        """Empty the file of steps, which may be of an earlier start."""
        self._file.unlink(missing_ok=True)

    def tell(self, step: str) -> None:
        """Add a line, once: a program that ends and begins again makes no progress."""
        if step in self.lines():
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(step + "\n")

    def lines(self) -> list[str]:
        """Lines of all steps so far."""
        return self._file.read_text(encoding="utf-8").splitlines() if self._file.is_file() else []


class ProgressTimeout:
    """Timeout that begins anew with every step of progress."""

    def __init__(
        self,
        limit_s: float,
        tell: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s, self._tell, self._clock = limit_s, tell, clock
        self._since = clock()
        self._step = "nothing was told yet"
        self._known: set[str] = set()

    def saw(self, steps: Sequence[str]) -> None:
        """Pass on new steps; any of them restarts the timeout."""
        for step in steps:
            if step not in self._known:
                self._known.add(step)
                self._step, self._since = step, self._clock()
                self._tell(step)

    def check(self) -> None:
        """Raise Stalled when the last step was too long ago."""
        if self._clock() - self._since > self._limit_s:
            self._give_up()

    def _give_up(self) -> NoReturn:
        raise Stalled(f"nothing advanced for {self._limit_s:.0f} s; the last step: {self._step}")
