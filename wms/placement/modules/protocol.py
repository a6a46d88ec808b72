"""Interface of transfer modules: a transfer to be done, its result, its failure and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wms.placement.conf import PlacementConf

#: Exit codes of attempts. 111 is Stork's, the others are those of the shell and of `timeout`.
FAILED: Final = 1
NO_MODULE: Final = 111
TIME_IS_OVER: Final = 124


class ModuleFailed(Exception):
    """An attempt failed: with which exit code, and why."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message


@dataclass(frozen=True, slots=True)
class TransferTask:
    """One transfer. `pulse` is called for each piece of work; its exception ends the attempt."""

    source_url: str
    destination_url: str
    arguments: str
    workspace_id: int
    directory: str
    expected_sha256: str
    expected_bytes: int | None
    conf: PlacementConf
    pulse: Callable[[], None]


@dataclass(frozen=True, slots=True)
class TransferResult:
    """A file that was transferred; `contents` by path are put into the workspace with the end."""

    size_bytes: int
    contents: Mapping[str, str] = field(default_factory=dict)
