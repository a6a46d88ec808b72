"""Jobs, their clusters, attempts, files, and limits of them, as rows."""

from __future__ import annotations

from wms.jobs.models.attempts import (
    Attempt,
    AttemptFile,
    EndedAttempt,
    Stream,
    WorkspaceFile,
)
from wms.jobs.models.clusters import Cluster, ClusterEvent, ClusterFault, ClusterTable
from wms.jobs.models.contents import Blob, StoredBytes, Workspace
from wms.jobs.models.descriptions import JobDescription
from wms.jobs.models.input_sets import InputChange, InputSet, ResolvedSet
from wms.jobs.models.jobs import Job, JobEvent, LoggedJobEvent
from wms.jobs.models.limits import RunningLimit
from wms.jobs.models.outputs import OutputBytes, OutputLease
from wms.jobs.models.scopes import Filling, SiteScope, SiteSet
from wms.jobs.models.uploads import ResumableUpload
from wms.jobs.models.uses import TopicUse

__all__ = [
    "Attempt",
    "AttemptFile",
    "Blob",
    "Cluster",
    "ClusterEvent",
    "ClusterFault",
    "ClusterTable",
    "EndedAttempt",
    "Filling",
    "InputChange",
    "InputSet",
    "Job",
    "JobDescription",
    "JobEvent",
    "LoggedJobEvent",
    "OutputBytes",
    "OutputLease",
    "ResolvedSet",
    "ResumableUpload",
    "RunningLimit",
    "SiteScope",
    "SiteSet",
    "StoredBytes",
    "Stream",
    "TopicUse",
    "Workspace",
    "WorkspaceFile",
]
