"""Faults and warnings of DAG files: exceptions, and their collection, each once, in order.

Parsing goes on with the next line after a fault, unless a limit is exceeded. A fault that only
follows from another one is dropped. A warning becomes a fault by the level of DAGMAN_USE_STRICT.
Also the message for a check that takes too long.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from matching.negotiation.deadline import Deadline
from wms.core.errors import Finding
from wms.dags.language.size_limits import MAX_FINDINGS
from wms.dags.language.spec import SourceLocation


class Fault(ValueError):
    """A fault of the current line, or of `location` if that is given."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.location = location


class ConsequentFault(Fault):
    """A fault that follows from another one, which is reported already: it is dropped."""

    def __init__(self) -> None:
        super().__init__("follows from another fault")


class DagTooLarge(Fault):
    """The DAG exceeds a size limit or the time limit: parsing stops."""


def deadline_message(deadline: Deadline) -> str:
    """Message for a DAG whose check takes too long."""
    return f"checking the DAG takes longer than {deadline.limit_s:g} s"


class ReadingStopped(Exception):
    """Parsing has ended early: too many faults, or a limit was exceeded."""


@dataclass(slots=True)
class FindingCollector:
    """Faults and warnings of a DAG, each once, even where several splices read the same file.

    A warning has a level: it becomes a fault where `strictness` (DAGMAN_USE_STRICT) is that high.
    """

    faults: dict[Finding, None] = field(default_factory=dict)
    warning_levels: dict[Finding, int] = field(default_factory=dict)
    strictness: int = 0

    def add_fault(self, message: str, location: SourceLocation, command: str = "") -> None:
        """Add a fault. Raises ReadingStopped when there are too many."""
        finding = Finding(message, file=location.file, line=location.line or None, command=command)
        self.faults[finding] = None
        if len(self.faults) >= MAX_FINDINGS:
            raise ReadingStopped

    def add_warning(
        self, message: str, location: SourceLocation, command: str = "", *, level: int = 9
    ) -> None:
        """Add a warning; those beyond the limit are dropped."""
        if len(self.warning_levels) < MAX_FINDINGS:
            finding = Finding(
                message, file=location.file, line=location.line or None, command=command
            )
            self.warning_levels[finding] = level

    def findings(self) -> list[Finding]:
        """Faults by file and line."""
        stricter = [each for each, level in self.warning_levels.items() if self._is_fault(level)]
        return sorted({**self.faults, **dict.fromkeys(stricter)}, key=finding_order)[:MAX_FINDINGS]

    def warnings(self) -> list[Finding]:
        """Warnings by file and line."""
        kept = [each for each, level in self.warning_levels.items() if not self._is_fault(level)]
        return sorted(kept, key=finding_order)

    def _is_fault(self, level: int) -> bool:
        return level <= self.strictness


def finding_order(finding: Finding) -> tuple[str, int, str]:
    """Sort key of findings: file, line, message."""
    return finding.file, finding.line or 0, finding.message
