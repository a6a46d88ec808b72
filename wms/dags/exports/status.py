"""Export of a DAG as node status file: ClassAds of the DAG and of each of its nodes.

Also times as C's `ctime` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from matching.ads.classads import quote
from wms.dags.exports.sql import read_node_statuses
from wms.dags.models import Dag
from wms.dags.states import DAG_TERMINAL, NODE_IN_FLIGHT, DagState, DagStatus, NodeState

#: DAGMan's codes of the states of nodes, with their names.
_CODES = {
    NodeState.WAITING.value: (0, "STATUS_NOT_READY"),
    NodeState.READY.value: (1, "STATUS_READY"),
    NodeState.PRE_RUNNING.value: (2, "STATUS_PRERUN"),
    NodeState.SUBMITTED.value: (3, "STATUS_SUBMITTED"),
    NodeState.POST_RUNNING.value: (4, "STATUS_POSTRUN"),
    NodeState.DONE.value: (5, "STATUS_DONE"),
    NodeState.FAILED.value: (6, "STATUS_ERROR"),
    NodeState.FUTILE.value: (7, "STATUS_FUTILE"),
    # DAGMan knows no such state; of its own, this is the one of a node that never runs.
    NodeState.SKIPPED.value: (7, "STATUS_FUTILE"),
}
#: The attributes with the counts, in the order of the file, and the states that each counts.
_COUNTED = {
    "NodesDone": NodeState.DONE,
    "NodesPre": NodeState.PRE_RUNNING,
    "NodesQueued": NodeState.SUBMITTED,
    "NodesPost": NodeState.POST_RUNNING,
    "NodesReady": NodeState.READY,
    "NodesUnready": NodeState.WAITING,
    "NodesFutile": NodeState.FUTILE,
    "NodesFailed": NodeState.FAILED,
}
_NOTES = {
    DagStatus.ABORTED.value: "aborted",
    DagStatus.REMOVED.value: "removed",
    DagStatus.CYCLE.value: "cycle",
}
_READ_NODES = read_node_statuses(state.value for state in _COUNTED.values())

_CHUNK = 2000


class _Row(NamedTuple):
    name: str
    state: str
    shown: str
    reason: str
    retry_number: int
    queued: int
    held: int
    idle: int


def lines(dag: Dag, now: datetime) -> Iterator[str]:
    """Text of the file."""
    is_over = dag.state in DAG_TERMINAL
    given = {"dag": dag.pk, "is_over": is_over, "in_flight": sorted(NODE_IN_FLIGHT)}
    width = len(_Row._fields)
    is_first = True
    for row in _stream(_READ_NODES, given):
        if is_first:
            yield _head(dag, now, row[width:])
            is_first = False
        yield _node(_Row(*row[:width]))
    if is_first:
        yield _head(dag, now, (0,) * (len(_COUNTED) + 3))
    yield _ad("StatusEnd", [("EndTime", _time(now)), ("NextUpdate", '0; /* "none" */')])


def _head(dag: Dag, now: datetime, counts: tuple[Any, ...]) -> str:
    total, *by_state, held, idle = counts
    code, name, note = _dag_status(dag)
    files = ",\n".join(f"    {quote(file)}" for file in dag.dag_files)
    return _ad(
        "DagStatus",
        [
            ("DagFiles", f"{{\n{files}\n  }};"),
            ("Timestamp", _time(now)),
            ("DagStatus", f'{code}; /* "{name} ({note})" */'),
            ("NodesTotal", f"{total};"),
            *((name, f"{count};") for name, count in zip(_COUNTED, by_state, strict=True)),
            ("JobProcsHeld", f"{held or 0};"),
            ("JobProcsIdle", f"{idle or 0}; /* includes held */"),
        ],
    )


def _dag_status(dag: Dag) -> tuple[int, str, str]:
    """Status code of the DAG, the code's name, and the note in brackets."""
    if dag.state not in DAG_TERMINAL:
        ending = dag.ending_status if dag.is_ending else DagStatus.OK
        note = _NOTES.get(ending, "held" if dag.state == DagState.HELD else "")
        return *_CODES[NodeState.SUBMITTED.value], note
    has_succeeded = dag.state == DagState.COMPLETED if dag.exit_code is None else not dag.exit_code
    if has_succeeded:
        return *_CODES[NodeState.DONE.value], "success"
    note = "removed" if dag.state == DagState.REMOVED else _NOTES.get(dag.status, "failed")
    return *_CODES[NodeState.FAILED.value], note


def _node(row: _Row) -> str:
    code, name = _CODES[row.shown]
    return _ad(
        "NodeStatus",
        [
            ("Node", f"{quote(row.name)};"),
            ("NodeStatus", f'{code}; /* "{name}" */'),
            ("StatusDetails", f"{quote(_details(row))};"),
            ("RetryCount", f"{row.retry_number};"),
            ("JobProcsQueued", f"{row.queued};"),
            ("JobProcsHeld", f"{row.held};"),
        ],
    )


def _details(row: _Row) -> str:
    if row.state != row.shown and row.state != NodeState.SKIPPED:
        return f"Was {_CODES[row.state][1]}"
    if row.shown == NodeState.SUBMITTED:
        return "idle" if row.idle else "not_idle"
    return row.reason


def _time(time: datetime) -> str:
    return f'{int(time.timestamp())}; /* "{c_time(time)}" */'


def _ad(kind: str, attributes: list[tuple[str, str]]) -> str:
    body = "".join(f"  {name} = {value}\n" for name, value in attributes)
    return f'[\n  Type = "{kind}";\n{body}]\n'


def _stream(sql: str, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of one statement, fetched by the thousands through a server-side cursor."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, parameters)
        while rows := cursor.fetchmany(_CHUNK):
            yield from rows


def c_time(time: datetime) -> str:
    """Time as C's `ctime` writes it, in UTC: `Fri Nov 20 13:38:43 2026`."""
    in_utc = time.astimezone(UTC)
    return f"{in_utc:%a %b} {in_utc.day:2d} {in_utc:%H:%M:%S %Y}"
