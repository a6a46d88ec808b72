"""Cache of DAG drawings: layouts, states, times and counts of nodes, for page and API.

Times are start and end, expected ones of nodes that have not ended. Without a cache all is computed
anew. A drawing is kept until the DAG grows, what depends on node states until its next event. Large
new DAGs are laid out ahead of requests.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

from wms.dags.models import Dag
from wms.dags.reading.drawing import FORMAT, Drawing, draw, unpack_drawing
from wms.dags.reading.drawing_analysis import NodeTimes, estimate_node_times, times_of_nodes
from wms.dags.reading.drawing_states import (
    OwnStates,
    States,
    Version,
    own_states,
    version_of,
    with_jobs,
)
from wms.dags.reading.selectors import NodeCounts, counts_by_state
from wms.dags.states import DAG_TERMINAL

log = structlog.get_logger(__name__)
_KEPT_S = 7 * 86_400
#: A process keeps so many at hand; each takes 20 bytes a node and 8 an arc.
_AT_HAND = 8
_COUNTS_AT_HAND = 1000
#: Expected ends of nodes are so old at most.
_EXPECTED_S = 30
#: Smaller DAGs are drawn in a moment when they are asked for.
_LARGE = 10_000
#: Of so many latest DAGs so many large ones are drawn ahead.
_LATEST, _MOST_AHEAD = 500, 20


def drawing_of(dag: Dag) -> Drawing:
    """Layout of the nodes of a DAG. Computing it for 200,000 nodes takes half a second."""
    return _drawing(dag.pk, _stamp(dag))


def _stamp(dag: Dag) -> str:
    """Name of a DAG's drawing until it grows: ids alone begin anew in another database."""
    return f"{dag.created_at.isoformat()}:{dag.node_count}"


@lru_cache(maxsize=_AT_HAND)
def _drawing(dag_id: int, stamp: str) -> Drawing:
    key = _key(dag_id, stamp)
    kept = _kept(key)
    return _make(dag_id, key) if kept is None else kept


def _key(dag_id: int, stamp: str) -> str:
    return f"drawing:{FORMAT}:{dag_id}:{stamp}"


def _make(dag_id: int, key: str) -> Drawing:
    drawing = draw(Dag(pk=dag_id))
    try:
        cache.set(key, drawing.packed(), timeout=_KEPT_S)
    except RedisError as error:
        log.warning("drawing_not_kept", dag_id=dag_id, error=str(error))
    return drawing


def draw_ahead(now: datetime) -> dict[str, Any]:
    """Compute and cache the layouts of the latest large DAGs ahead of requests.

    However a DAG came to be, and whatever became of the cache, it is found here.
    """
    latest = Dag.objects.order_by("-pk").values("pk")[:_LATEST]
    large = Dag.objects.filter(pk__in=latest, node_count__gte=_LARGE).order_by("-pk")
    drawn = []
    for dag in large.only("created_at", "node_count")[:_MOST_AHEAD]:
        key = _key(dag.pk, _stamp(dag))
        if not cache.has_key(key):
            _make(dag.pk, key)
            drawn.append(dag.pk)
    return {"drawn": drawn}


def _kept(key: str) -> Drawing | None:
    try:
        content = cache.get(key)
    except RedisError as error:
        log.warning("drawing_unreadable", error=str(error))
        return None
    try:
        return unpack_drawing(content) if content else None
    except zlib.error:
        return None


def columns_of(dag: Dag) -> bytes:
    """Columns from which a browser draws the nodes of a DAG, compressed by gzip."""
    return _columns(dag.pk, _stamp(dag))


@lru_cache(maxsize=_AT_HAND)
def _columns(dag_id: int, stamp: str) -> bytes:
    return gzip.compress(_drawing(dag_id, stamp).columns(), 6, mtime=0)


def states_of(dag: Dag, version: Version | None = None) -> States:
    """The states of all nodes of a DAG, as they are drawn; the version, if it was read just now."""
    version = version or version_of(dag)
    own = _own_states(dag.pk, _stamp(dag), version.event_id)
    return with_jobs(dag, drawing_of(dag), version, own)


@lru_cache(maxsize=_AT_HAND)
def _own_states(dag_id: int, stamp: str, event_id: int) -> OwnStates:
    return own_states(Dag(pk=dag_id))


@lru_cache(maxsize=_AT_HAND)
def _times(dag_id: int, stamp: str, event_id: int) -> Sequence[float]:
    return times_of_nodes(Dag(pk=dag_id))


def ends_by(dag: Dag, states: States, *, begun: float, now: float) -> NodeTimes:
    """Start and end times of the nodes of a DAG in these states; of the others, expected ones.

    For a while the expectations stay as they are: they are a long walk through a large DAG.
    """
    event_id = states.version.event_id
    seen = now if dag.state in DAG_TERMINAL else now - now % _EXPECTED_S
    return _ends(dag.pk, _stamp(dag), event_id, states.codes, begun, seen)


@lru_cache(maxsize=2)
def _ends(
    dag_id: int, stamp: str, event_id: int, codes: bytes, begun: float, now: float
) -> NodeTimes:
    times = _times(dag_id, stamp, event_id)
    return estimate_node_times(_drawing(dag_id, stamp), codes, times, begun=begun, now=now)


def counts_of(dag: Dag, version: Version) -> NodeCounts:
    """Number of nodes of a DAG in each state, at a version that was read just now."""
    return _counts(dag.pk, _stamp(dag), version.event_id)


@lru_cache(maxsize=_COUNTS_AT_HAND)
def _counts(dag_id: int, stamp: str, event_id: int) -> NodeCounts:
    return counts_by_state(Dag(pk=dag_id))
