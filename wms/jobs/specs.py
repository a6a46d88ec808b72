"""Jobs to be submitted, and storing very many of them at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any

from django.db import connection

from matching.needs import Needs
from wms.core.models import User
from wms.jobs.models import Workspace

#: Stands in the texts of a job for the number of its cluster, which is known once it is stored.
CLUSTER_MARK = "\ue000"
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
     wall_limit_s, max_attempts, attempt_number, topic, topic_key, cluster_id, process,
     max_retries, periodic, request_disk_mb, directory)
SELECT job.id, job.name, %(owner)s, %(workspace)s, %(state)s, '', job.executable, job.arguments,
     job.environment, job.input_files, job.output_files, job.stdout_name, job.stderr_name,
     of_job.needs, job.priority, job.attributes, job.wall_limit_s, job.max_attempts, 0,
     %(topic)s, %(topic_key)s, job.cluster_id, job.process, job.max_retries, job.periodic,
     job.request_disk_mb, job.directory
FROM jsonb_to_recordset(%(jobs)s::jsonb) AS job(
    id bigint, name text, executable text, arguments text[], environment jsonb,
    input_files varchar[], output_files varchar[], stdout_name text, stderr_name text,
    needs_number integer, priority smallint, attributes jsonb, wall_limit_s integer,
    max_attempts smallint, cluster_id bigint, process integer, max_retries smallint,
    periodic jsonb, request_disk_mb integer, directory text)
JOIN jsonb_to_recordset(%(needs)s::jsonb) AS of_job(number integer, needs jsonb)
    ON of_job.number = job.needs_number
"""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to be submitted. Its files have their names in the job's directory, the executable in
    the whole workspace. With `mentions_cluster` CLUSTER_MARK stands for the cluster's number in
    its texts.

    `max_retries` is how often a payload that failed is run again. `periodic` are the expressions
    that decide about the job while it is in the queue and when it ends; see `wms.jobs.verdicts`.
    """

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
    max_retries: int = 0
    periodic: Mapping[str, str] | None = None
    request_disk_mb: int = 0
    directory: str = ""
    mentions_cluster: bool = False


def insert_jobs(
    specs: Sequence[JobSpec],
    *,
    state: str,
    owner: User,
    workspace: Workspace,
    topic: str,
    topic_key: int,
    clusters: Sequence[int] | None = None,
) -> list[int]:
    """Store new jobs in this state; their ids in the order of the specs, rising.

    `clusters` tells how many specs in a row belong together. The caller has opened a transaction,
    and writes the jobs' first events in it.
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
        places = _places(ids, clusters)
        for start in range(0, len(specs), _BATCH):
            batch = specs[start : start + _BATCH]
            numbers: dict[Needs, int] = {}
            jobs = [
                _row(spec, ids[place], places[place], numbers.setdefault(spec.needs, len(numbers)))
                for place, spec in enumerate(batch, start)
            ]
            needs = [{"number": number, "needs": as_dict(each)} for each, number in numbers.items()]
            cursor.execute(
                _INSERT, {"jobs": json.dumps(jobs), "needs": json.dumps(needs), **common}
            )
    return ids


def _places(ids: Sequence[int], clusters: Sequence[int] | None) -> list[tuple[int, int]]:
    """The cluster of each job, which is its first one, and the job's place in it."""
    if clusters is None:
        return [(job_id, 0) for job_id in ids]
    if sum(clusters) != len(ids) or min(clusters, default=1) < 1:
        raise ValueError(f"clusters of {sum(clusters)} jobs were named for {len(ids)} jobs")
    firsts = accumulate(clusters, initial=0)
    return [
        (ids[first], process)
        for first, size in zip(firsts, clusters, strict=False)
        for process in range(size)
    ]


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
    if not spec.mentions_cluster:
        return row
    text = json.dumps(row, ensure_ascii=False).replace(CLUSTER_MARK, str(place[0]))
    filled: dict[str, Any] = json.loads(text)
    return filled
