"""Publishing of an attempt's files into the workspace of its job."""

from __future__ import annotations

from datetime import datetime

from wms.core.errors import InvalidInput
from wms.jobs import prepared_statements
from wms.jobs.content.job_files import listed_names, workspace_path
from wms.jobs.models import Attempt, AttemptFile, Job, WorkspaceFile

_Kind = AttemptFile.Kind


def missing_outputs_reason(job: Job, attempt: Attempt) -> str:
    """Reason that names outputs which the attempt has not sent; empty when all are here."""
    files = prepared_statements.sent_files(attempt)
    sent = {file["path"] for file in files if file["kind"] == _Kind.OUTPUT}
    missing = sorted(set(job.output_files) - sent)
    return f"output files were not received: {listed_names(missing)}" if missing else ""


def publish(job: Job, attempt: Attempt, *, with_outputs: bool, now: datetime) -> None:
    """Put the attempt's files into the workspace: outputs of a success only, logs always.

    A log whose name can have no place there stays with the attempt alone.
    """
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
        name = logs.get(kind, file["path"] if with_outputs else "")
        try:
            if name:
                places[workspace_path(job, name)] = file["blob"]
        except InvalidInput:
            continue
    return places
