"""Bulk insertion of new jobs, which tell their first events: some are sent as the next are made.

Also new ids, of jobs and of clusters.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from wms.core.actors import Actor
from wms.core.database.actor_field import stored_actor
from wms.jobs.directives import Directives
from wms.jobs.specs import CLUSTER_MARK, JobSpec, SharedValues
from wms.jobs.sql import INSERT_JOBS, RESERVE_JOB_IDS
from wms.jobs.states import JobState
from wms.jobs.writing.stored_descriptions import ids_by_key

#: Rows of one statement: few enough that the server is soon at work, many enough that it is worth
#: a statement.
_BATCH = 125
#: So many different specifications are remembered, in case that the same comes again.
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class JobOrigin:
    """Whose jobs they are, where their files lie, and under which key their ends are announced."""

    owner_id: int
    workspace_id: int
    topic_key: int = 0


class JobWriter:
    """Writes new jobs in state waiting, which tell who has submitted them.

    The statements are sent without waiting for them when it is used inside
    `wms.core.database.statements.sent_ahead`. `expected` is about how many jobs will come. The
    caller has opened a transaction.
    """

    def __init__(
        self,
        origin: JobOrigin,
        *,
        actor: Actor,
        topic: str,
        expected: int,
    ) -> None:
        self._origin = origin
        self._common: dict[str, Any] = {
            "state": JobState.WAITING,
            **_columns(origin),
            "topic": topic,
            "submitted_by": stored_actor(actor.name),
        }
        self._ids: deque[int] = deque(new_ids(expected))
        self._rows: list[tuple[bytes, dict[str, Any]]] = []
        #: What specifications share that tell nothing of it, by their texts.
        self._shared: dict[str, SharedValues] = {}
        self._last_shared: SharedValues | None = None
        self._last: tuple[JobSpec | None, dict[str, Any]] = None, {}
        #: Descriptions of rows that were not yet sent, and the ids of those that were.
        self._new: dict[bytes, SharedValues] = {}
        self._known: dict[bytes, int] = {}

    def write(
        self,
        specs: Sequence[JobSpec],
        *,
        cluster_id: int = 0,
        processes: Sequence[int] = (),
        origin: JobOrigin | None = None,
    ) -> list[int]:
        """Take the jobs of one cluster; their ids, rising with every call.

        The cluster has the id of its first job, and they are numbered from 0, if not otherwise
        given. They come from the writer's origin, or from another one.
        """
        own = _columns(origin) if origin is not None and origin != self._origin else {}
        if len(self._ids) < len(specs):
            # What is left would be out of turn in a cluster.
            self._ids = deque(new_ids(max(len(specs), _BATCH)))
        ids = [self._ids.popleft() for _ in specs]
        numbers = processes or range(len(specs))
        for process, job_id, spec in zip(numbers, ids, specs, strict=True):
            key, row = self._row(spec, job_id, cluster_id or ids[0], process)
            self._rows.append((key, row | own if own else row))
            if len(self._rows) >= _BATCH:
                self.flush()
        return ids

    def flush(self) -> None:
        """Send what was taken and not yet sent."""
        if not self._rows:
            return
        if self._new:
            self._known |= ids_by_key(self._new.values())
            self._new = {}
        rows = [{**row, "description_id": self._known[key]} for key, row in self._rows]
        with connection.cursor() as cursor:
            cursor.execute(INSERT_JOBS, {"jobs": json.dumps(rows), **self._common})
        self._rows = []

    def _row(
        self, spec: JobSpec, job_id: int, cluster_id: int, process: int
    ) -> tuple[bytes, dict[str, Any]]:
        """The key of its description, and its own columns."""
        shared = spec.shared or self._shared_by(spec)
        if shared.key not in self._known:
            self._new[shared.key] = shared
        row: dict[str, Any] = {
            "id": job_id,
            "name": spec.name,
            "cluster_id": cluster_id,
            "process": process,
            "max_attempts": spec.max_attempts,
        }
        if own := self._own_values(spec, shared):
            row["own"] = _filled(own, cluster_id) if spec.mentions_cluster else own
        if spec.priority != 1:
            row["priority"] = spec.priority
        if spec.periodic or Directives.of(spec.directives).duration_limit_s:
            row["has_periodic"] = True
        return shared.key, row

    def _own_values(self, spec: JobSpec, shared: SharedValues) -> dict[str, Any]:
        """Computed once for all jobs of a list that are the same."""
        known, own = self._last
        if known is not spec:
            own = spec.own_values(shared)
            self._last = spec, own
        return own

    def _shared_by(self, spec: JobSpec) -> SharedValues:
        """What a specification shares that tells nothing of it: all but what names its cluster."""
        if self._last_shared is not None and not spec.own_values(self._last_shared):
            return self._last_shared
        values = spec.described()
        if spec.mentions_cluster:
            values = {n: value for n, value in values.items() if CLUSTER_MARK not in repr(value)}
        text = repr(values)
        if text not in self._shared:
            if len(self._shared) >= _MOST_KEPT:
                self._shared.clear()
            self._shared[text] = SharedValues.of(values)
        self._last_shared = self._shared[text]
        return self._last_shared


def _columns(origin: JobOrigin) -> dict[str, int]:
    return {
        "owner": origin.owner_id,
        "workspace": origin.workspace_id,
        "topic_key": origin.topic_key,
    }


def new_ids(number: int) -> list[int]:
    """New ids of jobs, or of clusters, which share their numbers; rising."""
    with connection.cursor() as cursor:
        cursor.execute(RESERVE_JOB_IDS, [number])
        return [pk for first, last in cursor.fetchall() for pk in range(first, last + 1)]


def _filled(own: dict[str, Any], cluster_id: int) -> dict[str, Any]:
    """Own values with the cluster's number where it is mentioned."""
    text = json.dumps(own, ensure_ascii=False).replace(CLUSTER_MARK, str(cluster_id))
    filled: dict[str, Any] = json.loads(text)
    return filled
