"""Client of a Pilotage portal: a typed Python API, and the command `pilotage`.

Names are loaded when they are used, so that commands begin quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import AsyncClient, Client
    from .errors import (
        Busy,
        Conflict,
        InvalidInput,
        NoAnswer,
        NoProfile,
        NotAuthenticated,
        NotFound,
        NotPermitted,
        NotPilotage,
        PilotageError,
        Problem,
        QuotaExceeded,
        ServerFault,
        TimedOut,
        TooLarge,
        UsageError,
    )
    from .files.found import DagFiles, JobFiles, dag_files, job_files
    from .model import (
        Check,
        Cluster,
        Dag,
        Event,
        EventBatch,
        Finding,
        Job,
        LogPart,
        NodeCounts,
        Pilot,
        Site,
    )
    from .remark import Remark
    from .runs import AsyncRun, Run

__version__ = "0.1.0"
_HOMES = {
    "client": ("AsyncClient", "Client"),
    "errors": (
        "Busy", "Conflict", "InvalidInput", "NoAnswer", "NoProfile", "NotAuthenticated",
        "NotFound", "NotPermitted", "NotPilotage", "PilotageError", "Problem", "QuotaExceeded",
        "ServerFault", "TimedOut", "TooLarge", "UsageError",
    ),
    "files.found": ("DagFiles", "JobFiles", "dag_files", "job_files"),
    "model": (
        "Check", "Cluster", "Dag", "Event", "EventBatch", "Finding", "Job", "LogPart",
        "NodeCounts", "Pilot", "Site",
    ),
    "remark": ("Remark",),
    "runs": ("AsyncRun", "Run"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AsyncClient", "AsyncRun", "Busy", "Check", "Client", "Cluster", "Conflict", "Dag", "DagFiles",
    "Event", "EventBatch", "Finding", "InvalidInput", "Job", "JobFiles", "LogPart", "NoAnswer",
    "NoProfile", "NodeCounts", "NotAuthenticated", "NotFound", "NotPermitted", "NotPilotage",
    "Pilot", "PilotageError", "Problem", "QuotaExceeded", "Remark", "Run", "ServerFault", "Site",
    "TimedOut", "TooLarge", "UsageError", "dag_files", "job_files",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
