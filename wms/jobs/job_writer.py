"""Bulk insertion of new jobs: the server stores some while the next are prepared."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Any

from django.db import connection

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import lifecycle
from wms.jobs.models import Workspace
from wms.jobs.specs import CLUSTER_MARK, JobSpec
from wms.jobs.sql import INSERT_JOBS, RESERVE_JOB_IDS
from wms.jobs.states import JobState

#: Rows of one statement: few enough that the server is soon at work, many enough that it is worth
#: a statement.
_BATCH = 125


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
                INSERT_JOBS,
                {"jobs": json.dumps(self._rows), "needs": json.dumps(needs), **self._common},
            )
        lifecycle.begin("enqueue", [row["id"] for row in self._rows], actor=self._actor)
        self._rows, self._needs = [], {}


def _new_ids(number: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(RESERVE_JOB_IDS, [number])
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
