"""Jobs to be submitted, and storing very many of them at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db import connection

from matching.needs import Needs
from wms.core.models import User
from wms.jobs.models import Workspace

#: Rows of one statement.
_BATCH = 20_000

_NEW_IDS = """
SELECT nextval(pg_get_serial_sequence('jobs_job', 'id')) FROM generate_series(1, %s)
"""

# The rows travel as one JSON value, which is several times as fast as a value for each column; the
# needs, which many jobs have in common, apart from them.
_INSERT = """
INSERT INTO jobs_job
    (id, name, owner_id, workspace_id, state, state_reason, executable, arguments, environment,
     input_files, output_files, stdout_name, stderr_name, needs, priority, attributes,
     wall_limit_s, max_attempts, attempt_number, topic, topic_key)
SELECT job.id, job.name, %(owner)s, %(workspace)s, %(state)s, '', job.executable, job.arguments,
     job.environment, job.input_files, job.output_files, job.stdout_name, job.stderr_name,
     of_job.needs, job.priority, job.attributes, job.wall_limit_s, job.max_attempts, 0,
     %(topic)s, %(topic_key)s
FROM jsonb_to_recordset(%(jobs)s::jsonb) AS job(
    id bigint, name text, executable text, arguments text[], environment jsonb,
    input_files varchar[], output_files varchar[], stdout_name text, stderr_name text,
    needs_number integer, priority smallint, attributes jsonb, wall_limit_s integer,
    max_attempts smallint)
JOIN jsonb_to_recordset(%(needs)s::jsonb) AS of_job(number integer, needs jsonb)
    ON of_job.number = job.needs_number
"""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to be submitted. File names are paths in the workspace."""

    name: str
    executable: str
    needs: Needs
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    input_files: tuple[str, ...] = ()
    output_files: tuple[str, ...] = ()
    stdout_name: str = ""
    stderr_name: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    wall_limit_s: int = 86_400
    max_attempts: int = 5
    priority: int = 1


def insert_jobs(
    specs: Sequence[JobSpec],
    *,
    state: str,
    owner: User,
    workspace: Workspace,
    topic: str,
    topic_key: int,
) -> list[int]:
    """Store new jobs in this state; their ids in the order of the specs, rising.

    The caller has opened a transaction, and writes the jobs' first events in it.
    """
    as_dict = cache(Needs.as_dict)
    common: dict[str, Any] = {
        "state": state,
        "owner": owner.pk,
        "workspace": workspace.pk,
        "topic": topic,
        "topic_key": topic_key,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEW_IDS, [len(specs)])
        ids = sorted(row[0] for row in cursor.fetchall())
        for start in range(0, len(specs), _BATCH):
            batch = specs[start : start + _BATCH]
            numbers: dict[Needs, int] = {}
            jobs = [
                _row(spec, ids[place], numbers.setdefault(spec.needs, len(numbers)))
                for place, spec in enumerate(batch, start)
            ]
            needs = [{"number": number, "needs": as_dict(each)} for each, number in numbers.items()]
            cursor.execute(
                _INSERT, {"jobs": json.dumps(jobs), "needs": json.dumps(needs), **common}
            )
    return ids


def _row(spec: JobSpec, job_id: int, needs_number: int) -> dict[str, Any]:
    return {
        "id": job_id,
        "needs_number": needs_number,
        "name": spec.name,
        "executable": spec.executable,
        "arguments": spec.arguments,
        "environment": dict(spec.environment),
        "input_files": spec.input_files,
        "output_files": spec.output_files,
        "stdout_name": spec.stdout_name,
        "stderr_name": spec.stderr_name,
        "priority": spec.priority,
        "attributes": dict(spec.attributes),
        "wall_limit_s": spec.wall_limit_s,
        "max_attempts": spec.max_attempts,
    }
