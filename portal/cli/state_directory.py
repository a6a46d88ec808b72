"""State directory (`var` or $PILOTAGE_VAR): paths of logs, run files, mark of migrated tables.

Also the path of the checkout (`BASE`). Independent of Django, since the settings read files there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """Directory of all run-time state: $PILOTAGE_VAR, by default `var` in the checkout."""

    var: Path

    @classmethod
    def from_environment(cls) -> StateDirectory:
        return cls(Path(os.environ.get("PILOTAGE_VAR") or BASE / "var").resolve())

    @property
    def run(self) -> Path:
        """Addresses, secrets and the marks of the running portal."""
        return self.var / "run"

    @property
    def log(self) -> Path:
        """One log file per program."""
        return self.var / "log"

    @property
    def is_migrated(self) -> Path:
        """Path of the mark that the running portal's tables are up to date."""
        return self.run / "migrated"

    @property
    def is_restoring(self) -> Path:
        """Path of the mark that a backup is being restored, and nothing may start."""
        return self.run / "restoring"
