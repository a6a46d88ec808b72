"""Input files and executable of a job, looked up in its workspace, and those that are missing.

Files of its checkpoint, if it has one, take their places.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from wms.jobs import prepared_statements
from wms.jobs.attempts.checkpoints import checkpoint_blobs
from wms.jobs.directives import Directives
from wms.jobs.models import Blob, Job


def input_blobs(job: Job) -> dict[str, Blob]:
    """The job's executable and input files as they are in the workspace now.

    By the name that the payload finds them under: in the job's directory, if it has one. Files of
    a checkpoint of the job take their places.
    A name that is not in the workspace is left out: an executable may live on the node.
    """
    places = {name: posixpath.join(job.directory, name) for name in job.input_files}
    places[job.executable] = job.executable
    # No path of a workspace is absolute.
    paths = {path for path in places.values() if not path.startswith("/")}
    blobs = prepared_statements.workspace_blobs(job.workspace_id, paths) if paths else {}
    found = {name: blobs[path] for name, path in places.items() if path in blobs}
    if Directives.of(job.directives).checkpoint_exit_code is not None:
        found |= checkpoint_blobs(job)
    return found


def missing_inputs(job: Job, found: Sequence[str]) -> list[str]:
    """Declared inputs that are not in the workspace."""
    declared = {*job.input_files} | (
        {job.executable} if not job.executable.startswith("/") else set()
    )
    return sorted(declared - set(found))
