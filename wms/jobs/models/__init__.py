"""Jobs, their attempts, their files, and limits of them, as rows."""

from __future__ import annotations

from wms.jobs.models.attempts import Attempt, AttemptFile, Stream, WorkspaceFile
from wms.jobs.models.contents import Blob, Workspace
from wms.jobs.models.jobs import Job, JobEvent
from wms.jobs.models.limits import RunningLimit

__all__ = [
    "Attempt",
    "AttemptFile",
    "Blob",
    "Job",
    "JobEvent",
    "RunningLimit",
    "Stream",
    "Workspace",
    "WorkspaceFile",
]
