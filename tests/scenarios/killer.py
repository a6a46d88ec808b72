"""Killer of pilots on this host by SIGKILL, as by a failing node: at a random moment of their life.

`living_pilots` finds the processes of pilots, with their ids in the batch systems.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

#: When a pilot is killed, counted from when it is seen first.
_LIFE_S = (1.0, 20.0)


@dataclass(frozen=True, slots=True)
class LivingPilot:
    """The process of a pilot, and its id in the batch system that started it."""

    pid: int
    kind: str
    native_id: str


def living_pilots(folders: Sequence[Path]) -> list[LivingPilot]:
    """The pilots of this host whose batch system has its files below one of the folders."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
            if Path(words[-1]).name != "agent.pyz" or len(words) != 3:
                continue
            told = (entry / "environ").read_text(errors="replace").split("\0")
        except OSError:
            continue
        environment = dict(each.split("=", 1) for each in told if "=" in each)
        if any(str(folder) in value for folder in folders for value in environment.values()):
            found.append(LivingPilot(int(entry.name), *_names(environment)))
    return found


def _names(environment: dict[str, str]) -> tuple[str, str]:
    if "SLURM_ARRAY_JOB_ID" in environment:
        job, task = environment["SLURM_ARRAY_JOB_ID"], environment["SLURM_ARRAY_TASK_ID"]
        return "slurm", f"{job}_{task}"
    home = Path(environment["HOME"])
    return str(home.parent), home.name


class Killer(threading.Thread):
    """Kills every second pilot of each batch system by SIGKILL, at a random time of its life."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(daemon=True)
        self._folders = folders
        self._draw = random.Random(6)
        self._over = threading.Event()
        self._seen: set[str] = set()
        self._counts: Counter[str] = Counter()
        #: When each was killed, by the name that its batch system has for it.
        self.killed: dict[str, datetime] = {}

    def run(self) -> None:
        kill_at: dict[LivingPilot, float] = {}
        while not self._over.wait(0.5):
            now = time.monotonic()
            for pilot in living_pilots(self._folders):
                if pilot.native_id not in self._seen:
                    self._seen.add(pilot.native_id)
                    self._counts[pilot.kind] += 1
                    if self._counts[pilot.kind] % 2:
                        kill_at[pilot] = now + self._draw.uniform(*_LIFE_S)
            for pilot in [each for each, at in kill_at.items() if at <= now]:
                del kill_at[pilot]
                with suppress(ProcessLookupError):
                    os.kill(pilot.pid, signal.SIGKILL)
                    self.killed[pilot.native_id] = datetime.now(UTC)

    def stop(self) -> None:
        """Kill nobody any more."""
        self._over.set()
        self.join()
