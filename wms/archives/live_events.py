"""Events of a DAG, its nodes and its jobs, in the order of their times, as rows of its archive."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final

from wms.archives.layout import CHUNK_ROWS
from wms.archives.values import plain
from wms.dags.models import Dag, DagEvent, NodeEvent
from wms.dags.reading.dag_jobs import job_events_of

#: Fields that all events have, as the API names them.
_FIELDS: Final = (
    "id", "event", "from_state", "to_state", "actor", "reason", "cause", "facts", "created_at",
)  # fmt: skip


def event_rows(dag: Dag) -> Iterator[dict[str, Any]]:
    """All events: the three streams are merged, so that few are in memory.

    Of the same instant those of jobs come first, then nodes, then the DAG, each by its number.
    """
    streams = (
        _stream(dag, job_events_of(dag.pk), job="job_id"),
        _stream(dag, NodeEvent.objects.filter(dag=dag), node="node__name"),
        _stream(dag, DagEvent.objects.filter(dag=dag)),
    )
    yield from heapq.merge(*streams, key=lambda row: row["created_at"])


def _stream(dag: Dag, events: Any, **of: str) -> Iterator[dict[str, Any]]:
    rows = events.order_by("created_at", "pk").values_list(*of.values(), *_FIELDS)
    about = {"dag": dag.pk, "node": None, "job": None}
    for values in rows.iterator(chunk_size=CHUNK_ROWS):
        yield about | dict(zip((*of, *_FIELDS), map(plain, values), strict=True))
