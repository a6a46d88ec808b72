"""Names of a job's files: checked as paths in its workspace, and listed in reasons.

A name that leads out of the workspace is refused; long lists of names are cut short.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from wms.core.errors import InvalidInput
from wms.jobs.content.paths import path_in
from wms.jobs.directives import Directives
from wms.jobs.models import Job

#: Most names of files in a reason.
_MOST_LISTED = 20


def workspace_path(job: Job, name: str) -> str:
    """Path in the workspace of a file that a job names. Raises InvalidInput."""
    return path_in(job.directory, name)


def misplaced_file(job: Job) -> str:
    """Reason why an output of a job has no valid path in the workspace; empty if all have."""
    remaps = Directives.of(job.directives).output_remaps.values()
    for name in (*job.output_files, *remaps, job.stdout_name, job.stderr_name):
        try:
            if name:
                workspace_path(job, name)
        except InvalidInput as error:
            return f"a file of the job can have no place: {error.findings[0].message}"
    return ""


def listed_names(names: Collection[str]) -> str:
    """Names of files for a reason: the first of very many."""
    listed = ", ".join(islice(names, _MOST_LISTED))
    left = len(names) - _MOST_LISTED
    return f"{listed} and {left} more" if left > 0 else listed
