"""Storing very many jobs: some are stored by the server while the next are made here."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Any

from django.db import connection

from matching.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import lifecycle
from wms.jobs.models import Workspace
from wms.jobs.specs import CLUSTER_MARK, JobSpec
from wms.jobs.states import JobState

#: Rows of one statement: few enough that the server is soon at work, many enough that it is worth
#: a statement.
_BATCH = 125

_NEW_IDS = """
SELECT nextval(pg_get_serial_sequence('jobs_job', 'id')) FROM generate_series(1, %s)
"""

# The rows travel as one JSON value, which is several times as fast as a value for each column; the
# needs, which many jobs have in common, apart from them.
_INSERT = """
INSERT INTO jobs_job
    (id, name, owner_id, workspace_id, state, state_reason, executable, arguments, environment,
     input_files, output_files, stdout_name, stderr_name, needs, priority, attributes,
     wall_limit_s, max_attempts, attempt_number, topic, topic_key, cluster_id, process,
     max_retries, periodic, request_disk_mb, directory, avoided_hosts)
SELECT job.id, job.name, %(owner)s, %(workspace)s, %(state)s, '', job.executable, job.arguments,
     job.environment, job.input_files, job.output_files, job.stdout_name, job.stderr_name,
     of_job.needs, job.priority, job.attributes, job.wall_limit_s, job.max_attempts, 0,
     %(topic)s, %(topic_key)s, job.cluster_id, job.process, job.max_retries, job.periodic,
     job.request_disk_mb, job.directory, coalesce(job.avoided_hosts, '{}')
FROM jsonb_to_recordset(%(jobs)s::jsonb) AS job(
    id bigint, name text, executable text, arguments text[], environment jsonb,
    input_files varchar[], output_files varchar[], stdout_name text, stderr_name text,
    needs_number integer, priority smallint, attributes jsonb, wall_limit_s integer,
    max_attempts smallint, cluster_id bigint, process integer, max_retries smallint,
    periodic jsonb, request_disk_mb integer, directory text, avoided_hosts varchar[])
JOIN jsonb_to_recordset(%(needs)s::jsonb) AS of_job(number integer, needs jsonb)
    ON of_job.number = job.needs_number
"""


class JobWriter:
    """Writes new jobs in state waiting, with their first events.

    The statements are sent without waiting for them when it is used inside
    `wms.core.database.statements.sent_ahead`. `expected` is about how many jobs will come. The
    caller has opened a transaction.
    """

    def __init__(
        self,
        *,
        owner: User,
        workspace: Workspace,
        actor: Actor,
        topic: str,
        topic_key: int,
        expected: int,
    ) -> None:
        self._common: dict[str, Any] = {
            "state": JobState.WAITING,
            "owner": owner.pk,
            "workspace": workspace.pk,
            "topic": topic,
            "topic_key": topic_key,
        }
        self._actor = actor
        self._ids: deque[int] = deque(_new_ids(expected))
        self._rows: list[dict[str, Any]] = []
        self._needs: dict[Needs, int] = {}

    def write(self, specs: Sequence[JobSpec]) -> list[int]:
        """Take the jobs of one cluster; their ids, rising with every call."""
        if len(self._ids) < len(specs):
            # What is left would be out of turn in a cluster.
            self._ids = deque(_new_ids(max(len(specs), _BATCH)))
        ids = [self._ids.popleft() for _ in specs]
        for process, (job_id, spec) in enumerate(zip(ids, specs, strict=True)):
            number = self._needs.setdefault(spec.needs, len(self._needs))
            self._rows.append(_row(spec, job_id, (ids[0], process), number))
            if len(self._rows) >= _BATCH:
                self.flush()
        return ids

    def flush(self) -> None:
        """Send what was taken and not yet sent."""
        if not self._rows:
            return
        needs = [
            {"number": number, "needs": each.as_dict()} for each, number in self._needs.items()
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                _INSERT,
                {"jobs": json.dumps(self._rows), "needs": json.dumps(needs), **self._common},
            )
        lifecycle.begin("enqueue", [row["id"] for row in self._rows], actor=self._actor)
        self._rows, self._needs = [], {}


def _new_ids(number: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_NEW_IDS, [number])
        return sorted(row[0] for row in cursor.fetchall())


def _row(spec: JobSpec, job_id: int, place: tuple[int, int], needs_number: int) -> dict[str, Any]:
    row = {
        "id": job_id,
        "cluster_id": place[0],
        "process": place[1],
        "max_retries": spec.max_retries,
        "periodic": dict(spec.periodic) if spec.periodic else None,
        "request_disk_mb": spec.request_disk_mb,
        "directory": spec.directory,
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
    if spec.avoided_hosts:
        row["avoided_hosts"] = spec.avoided_hosts
    if not spec.mentions_cluster:
        return row
    text = json.dumps(row, ensure_ascii=False).replace(CLUSTER_MARK, str(place[0]))
    filled: dict[str, Any] = json.loads(text)
    return filled
