"""Publication of an attempt's outputs and logs in the workspace of its job; missing outputs.

Files of a cluster's job are not published: they stay with the attempt. Also the name under which an
output is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from wms.core.errors import InvalidInput
from wms.jobs import prepared_statements
from wms.jobs.clusters.states import TOPIC as CLUSTER_TOPIC
from wms.jobs.content.job_files import listed_names, workspace_path
from wms.jobs.directives import Directives, announced_as, folder_of, published_name
from wms.jobs.models import Attempt, AttemptFile, Job, WorkspaceFile

_Kind = AttemptFile.Kind


def missing_outputs_reason(job: Job, attempt: Attempt, folders: Mapping[str, int]) -> str:
    """Reason that names outputs which the attempt has not sent; empty when all are here.

    `folders` are the announced outputs that were folders, with the number of files in each.
    """
    files = prepared_statements.sent_files(attempt)
    sent = {file["path"] for file in files if file["kind"] == _Kind.OUTPUT}
    elsewhere = Directives.of(job.directives).output_urls
    expected = {name for name in job.output_files if name not in elsewhere}
    missing = [name for name in sorted(expected - sent) if name not in folders]
    for name, number in sorted(folders.items()):
        if sum(path.startswith(folder_of(name)) for path in sent) < number:
            missing.append(name)
    return f"output files were not received: {listed_names(missing)}" if missing else ""


def publish(job: Job, attempt: Attempt, *, with_outputs: bool, now: datetime) -> None:
    """Put the attempt's files into the workspace: outputs of a success only, logs always.

    A log whose name can have no place there stays with the attempt alone, and so does all of a job
    of a cluster: thousands of them write files of the same name (`wms.jobs.sandboxes`).
    """
    if job.topic == CLUSTER_TOPIC:
        return
    WorkspaceFile.objects.bulk_create(
        [
            WorkspaceFile(
                workspace_id=job.workspace_id,
                path=path,
                blob_id=blob,
                attempt=attempt,
                modified_at=now,
            )
            for path, blob in sorted(_by_place(job, attempt, with_outputs=with_outputs).items())
        ],
        update_conflicts=True,
        unique_fields=["workspace", "path"],
        update_fields=["blob", "attempt", "modified_at"],
    )


def _by_place(job: Job, attempt: Attempt, *, with_outputs: bool) -> dict[str, str]:
    """The contents by their paths in the workspace."""
    logs = {_Kind.STDOUT: job.stdout_name, _Kind.STDERR: job.stderr_name}
    places: dict[str, str] = {}
    for file in prepared_statements.sent_files(attempt):
        kind = _Kind(file["kind"])
        name = logs.get(kind, "")
        if kind == _Kind.OUTPUT and with_outputs:
            name = name_of_output(job, file["path"])
        try:
            if name:
                places[workspace_path(job, name)] = file["blob"]
        except InvalidInput:
            continue
    return places


def name_of_output(job: Job, path: str) -> str:
    """Name of an output in the job's directory: its new one, or that of its announced folder.

    Empty for a file that is not announced.
    """
    if not announced_as(path, job.output_files):
        return ""
    new = Directives.of(job.directives).place_of(path)
    return new if new != path else published_name(path, job.output_files)
