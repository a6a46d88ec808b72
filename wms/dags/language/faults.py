"""What is wrong in DAG files: faults are collected, and reading goes on with the next line."""

from __future__ import annotations

from dataclasses import dataclass, field

from matching.deadline import Deadline
from wms.core.errors import Finding
from wms.dags.language.bounds import MAX_FINDINGS
from wms.dags.language.spec import Place


class Fault(ValueError):
    """A fault of one line; it stands at `place` if that is another one."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


class FollowsFromAnother(Fault):
    """The line is wrong only because another one is, which is told already."""

    def __init__(self) -> None:
        super().__init__("follows from another fault")


class TooMuch(Fault):
    """The DAG is larger than allowed: nothing more is read."""


def too_late(patience: Deadline) -> str:
    """What is told of a DAG whose check takes too long."""
    return f"checking the DAG takes longer than {patience.limit_s:g} s"


class Enough(Exception):
    """So much is wrong that the rest is not read."""


@dataclass(slots=True)
class Told:
    """All faults and warnings, each once, however many splices read the file in which it is.

    Warnings have a level: they are faults where `strictness` (DAGMAN_USE_STRICT) is that high.
    """

    faults: dict[Finding, None] = field(default_factory=dict)
    leveled_warnings: dict[Finding, int] = field(default_factory=dict)
    strictness: int = 0

    def fault(self, message: str, place: Place, command: str = "") -> None:
        """Keep a fault. Raises Enough when there are too many."""
        finding = Finding(message, file=place.file, line=place.line or None, command=command)
        self.faults[finding] = None
        if len(self.faults) >= MAX_FINDINGS:
            raise Enough

    def warn(self, message: str, place: Place, command: str = "", *, level: int = 9) -> None:
        """Keep a warning; those beyond the bound are dropped."""
        if len(self.leveled_warnings) < MAX_FINDINGS:
            finding = Finding(message, file=place.file, line=place.line or None, command=command)
            self.leveled_warnings[finding] = level

    def findings(self) -> list[Finding]:
        """The faults by file and line."""
        stricter = [each for each, level in self.leveled_warnings.items() if self._is_fault(level)]
        return sorted({**self.faults, **dict.fromkeys(stricter)}, key=in_order)[:MAX_FINDINGS]

    def warnings(self) -> list[Finding]:
        """The warnings by file and line."""
        kept = [each for each, level in self.leveled_warnings.items() if not self._is_fault(level)]
        return sorted(kept, key=in_order)

    def _is_fault(self, level: int) -> bool:
        return level <= self.strictness


def in_order(finding: Finding) -> tuple[str, int, str]:
    """The key that sorts findings by file and line."""
    return finding.file, finding.line or 0, finding.message
