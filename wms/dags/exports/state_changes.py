"""State changes of a DAG's run, read from the tables as five streams, each ordered by time.

The streams are of the DAG, its nodes, its jobs, starts of scripts and ends of scripts. Also the
order in which they are merged, and the number of attempts in earlier runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from django.db import connection
from django.db.models import F

from wms.dags.exports.sql import COUNT_EARLIER_ATTEMPTS
from wms.dags.models import Dag, DagEvent, NodeEvent, ScriptRun
from wms.dags.reading.dag_jobs import job_events_of
from wms.dags.states import NODE_TERMINAL, NodeKind, NodeState, ScriptKind, ScriptState

_CHUNK = 2000
_BEGINNINGS = ("match", "begin")
_ENDINGS = ("complete", "fail", "remove")


class DagChange(NamedTuple):
    """The DAG began or ended."""

    time: datetime
    event: str

    @property
    def is_end(self) -> bool:
        """Whether it ended."""
        return self.event in _ENDINGS


class NodeChange(NamedTuple):
    """A node changed its state; `job` is the first job of its new cluster."""

    time: datetime
    event: str
    from_state: str
    to_state: str
    node_id: int
    name: str
    kind: str
    is_noop: bool | None
    job: int | None

    @property
    def is_from_ready(self) -> bool:
        """Whether it left the ready state without a PRE script and without a submission."""
        return self.from_state == NodeState.READY and self.event in {
            "succeed",
            "start post",
            "fail",
            "retry",
        }

    @property
    def ends_attempt(self) -> bool:
        """Whether this attempt of the node is over."""
        return self.to_state in NODE_TERMINAL or self.event == "retry"


class JobChange(NamedTuple):
    """A job changed its state."""

    time: datetime
    event: str
    from_state: str
    job_id: int
    cluster_id: int
    process: int
    reason: str
    facts: dict[str, Any]

    @property
    def cluster(self) -> int:
        """First job of its cluster, which is the job itself if it is alone."""
        return self.cluster_id or self.job_id


class ScriptStart(NamedTuple):
    """A script began; repetitions after DEFER are left out."""

    time: datetime
    node_id: int
    name: str
    kind: str


class ScriptEnd(NamedTuple):
    """A script ended."""

    time: datetime
    node_id: int
    name: str
    kind: str
    exit_code: int
    pre_defer: int | None
    post_defer: int | None

    @property
    def is_deferred(self) -> bool:
        """Whether its exit code means "not yet", so that it is run again."""
        status = self.pre_defer if self.kind == ScriptKind.PRE else self.post_defer
        return status == self.exit_code


Change: TypeAlias = DagChange | NodeChange | JobChange | ScriptStart | ScriptEnd


class ChangeOrder:
    """Order of changes: by time, and at the same instant a cause before its effect."""

    _RANKS = {JobChange: 1, ScriptEnd: 2, NodeChange: 3, ScriptStart: 4}

    @classmethod
    def key(cls, change: Change) -> tuple[datetime, int]:
        """Sort key of a change."""
        if isinstance(change, DagChange):
            return change.time, 5 if change.is_end else 0
        return change.time, cls._RANKS[type(change)]


def change_streams(dag: Dag) -> list[Iterator[Change]]:
    """The five streams; each is one query, sent when its first row is read."""
    return [
        _dag_changes(dag),
        _node_changes(dag),
        _job_changes(dag),
        _script_starts(dag),
        _script_ends(dag),
    ]


def _dag_changes(dag: Dag) -> Iterator[Change]:
    rows = DagEvent.objects.filter(dag=dag, event__in=(*_BEGINNINGS, *_ENDINGS))
    has_begun = False
    for time, event in rows.order_by("created_at", "pk").values_list("created_at", "event"):
        # A DAG that is matched again after it was taken from its site goes on.
        if event in _BEGINNINGS and has_begun:
            continue
        has_begun = event in _BEGINNINGS
        yield DagChange(time, event)


def _node_changes(dag: Dag) -> Iterator[Change]:
    rows = (
        NodeEvent.objects.filter(dag=dag)
        .exclude(event__in=("make ready", "give up", "rule out"))
        # They run nothing that the logs of jobs could tell of.
        .exclude(node__kind=NodeKind.GATE)
        .order_by("created_at", "pk")
        .values_list(
            "created_at", "event", "from_state", "to_state", "node_id", "node__name", "node__kind",
            "node__features__is_noop", "facts__job",
        )
    )  # fmt: skip
    yield from _rows(NodeChange, rows.iterator(chunk_size=_CHUNK))


def _job_changes(dag: Dag) -> Iterator[Change]:
    rows = (
        job_events_of(dag.pk)
        .order_by("created_at", "pk")
        .values_list(
            "created_at", "event", "from_state", "job_id", "job__cluster_id", "job__process",
            "reason", "facts",
        )
    )  # fmt: skip
    yield from _rows(JobChange, rows.iterator(chunk_size=_CHUNK))


def _script_starts(dag: Dag) -> Iterator[Change]:
    rows = (
        ScriptRun.objects.filter(dag=dag, run_number=0, started_at__isnull=False)
        .exclude(kind=ScriptKind.HOLD)
        .order_by("started_at", "pk")
        .values_list("started_at", "node_id", "node__name", "kind")
    )
    yield from _rows(ScriptStart, rows.iterator(chunk_size=_CHUNK))


def _script_ends(dag: Dag) -> Iterator[Change]:
    rows = (
        ScriptRun.objects.filter(dag=dag, state=ScriptState.ENDED, started_at__isnull=False)
        .exclude(kind=ScriptKind.HOLD)
        .annotate(
            pre_defer=F("node__features__scripts__pre__defer_status"),
            post_defer=F("node__features__scripts__post__defer_status"),
        )
        .order_by("ended_at", "pk")
        .values_list(
            "ended_at", "node_id", "node__name", "kind", "exit_code", "pre_defer", "post_defer"
        )
    )
    yield from _rows(ScriptEnd, rows.iterator(chunk_size=_CHUNK))


def _rows(kind: Callable[..., Change], rows: Iterable[tuple[Any, ...]]) -> Iterator[Change]:
    for row in rows:
        yield kind(*row)


def earlier_attempts(dag: Dag) -> int:
    """Number of attempts of all nodes in the runs before this one."""
    if dag.previous_run_id is None:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(COUNT_EARLIER_ATTEMPTS, [dag.pk])
        return int(cursor.fetchone()[0])
