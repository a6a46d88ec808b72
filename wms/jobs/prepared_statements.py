"""Prepared statements of jobs and attempts: read, lock, insert and end, for claims and reports.

Also the files that an attempt has sent, and the contents of named files of a workspace.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from wms.core.database.hex_field import stored_key
from wms.core.database.prepared import Columns, PreparedInsert
from wms.core.database.statements import one_line, prepared_rows, stored_values
from wms.jobs import sql
from wms.jobs.models import Attempt, Blob, Job, JobDescription

_JOB = Columns(Job, "job")
_ATTEMPT = Columns(Attempt, "attempt")
_BLOB = Columns(Blob, "blob")
_DESCRIPTION = Columns(JobDescription, "description")
_FIND_JOB = one_line(sql.FIND_JOB.format(job=_JOB, description=_DESCRIPTION))
_LOCK_JOB = one_line(sql.LOCK_JOB_OF_ATTEMPT.format(job=_JOB, description=_DESCRIPTION))
_FIND_ATTEMPT = one_line(sql.FIND_ATTEMPT.format(attempt=_ATTEMPT))
_FIND_OPEN_ATTEMPTS = one_line(sql.FIND_ATTEMPTS_OF_CLAIM.format(attempt=_ATTEMPT))
_FIND_INPUTS = one_line(sql.FIND_INPUTS.format(blob=_BLOB))
_END_ATTEMPT = one_line(sql.END_ATTEMPT)
_NEW_ATTEMPT = PreparedInsert(
    Attempt, "job", "number", "pilot_id", "site_name", "host", "claim_key", "job_type",
    "owner_group", "cores", "memory_mb", "gpus", "disk_mb", "limits", "outcome", "reason",
    "actor", "match_event",
)  # fmt: skip


def read_job(job_id: int) -> Job:
    """The job with this id, of which the caller knows that it exists."""
    [row] = prepared_rows(_FIND_JOB, {"job_id": job_id})
    return _described_job(row)


def lock_job_of_attempt(job_id: int, number: int, *, pilot_id: int) -> Job | None:
    """The job of this pilot's attempt, locked: no pilot locks the job of another."""
    about = {"job_id": job_id, "number": number, "pilot_id": pilot_id}
    rows = prepared_rows(_LOCK_JOB, about)
    return _described_job(rows[0]) if rows else None


def _described_job(row: Sequence[Any]) -> Job:
    job = _JOB.instance(row[: len(_JOB)])
    job.description = _DESCRIPTION.instance(row[len(_JOB) :])
    return job


def find_attempt(job_id: int, number: int, *, pilot_id: int) -> Attempt | None:
    """The attempt of this pilot, with the files that it sent: see `sent_files`."""
    rows = prepared_rows(_FIND_ATTEMPT, {"job_id": job_id, "number": number, "pilot_id": pilot_id})
    if not rows:
        return None
    attempt = _ATTEMPT.instance(rows[0][:-1])
    vars(attempt)["sent"] = json.loads(rows[0][-1])
    return attempt


def attempts_of_claim(pilot_id: int, claim_key: str) -> list[Attempt]:
    """Open attempts of a pilot, and that of this claim."""
    keys = {"claim_key": claim_key, "stored_key": stored_key(claim_key)}
    rows = prepared_rows(_FIND_OPEN_ATTEMPTS, {"pilot_id": pilot_id, **keys})
    return [_ATTEMPT.instance(row) for row in rows]


def insert_attempt(attempt: Attempt) -> None:
    """Store a new attempt; it learns its key and its defaults."""
    _NEW_ATTEMPT.insert(attempt)


def end_attempt(attempt_id: int, *, began_at: datetime, **columns: Any) -> None:
    """Store how an attempt ended; `began_at` counts where its start was never reported."""
    values = stored_values(Attempt, columns)
    prepared_rows(_END_ATTEMPT, {"attempt_id": attempt_id, "began_at": began_at, **values})


def workspace_blobs(workspace_id: int | None, paths: Collection[str]) -> dict[str, Blob]:
    """Contents of those of the named files that are in a workspace, by path."""
    rows = prepared_rows(_FIND_INPUTS, {"workspace_id": workspace_id, "paths": sorted(paths)})
    return {row[0]: _BLOB.instance(row[1:]) for row in rows}


def sent_files(attempt: Attempt) -> list[dict[str, str]]:
    """Files that an attempt of `find_attempt` has sent, oldest first: their kinds, paths, blobs."""
    files: list[dict[str, str]] = vars(attempt)["sent"]
    return files
