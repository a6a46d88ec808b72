"""Moving nodes by the thousands: one statement changes their rows and writes their events.

Every caller holds the lock of the DAG's row, which covers all of its nodes; so nothing has to be
locked or compared first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg.types.json import Jsonb

from wms.core.actors import Actor
from wms.core.database.statements import whole_numbers
from wms.core.errors import ReasonRequired
from wms.dags.engine import sql
from wms.dags.states import (
    COUNTED_KINDS,
    NODE_TRANSITIONS,
    NodeCause,
    NodeKind,
    NodeState,
)

#: The inbox of events that tell why nodes went wrong, and what these are.
FAILURE_TOPIC = "failed-nodes"
FAILURES = frozenset({"fail", "retry"})
#: What the submitted nodes of a category are counted under, beside the counters.
CATEGORY = "category:"
#: Stands for all DATA nodes, which the limits of jobs do not count; no name has a blank.
DATA_CATEGORY = " data"
#: The DAG's counters that follow the states of its nodes.
_COUNTERS = {
    NodeState.READY.value: "ready_count",
    NodeState.SUBMITTED.value: "submitted_count",
    NodeState.DONE.value: "done_count",
    NodeState.FAILED.value: "failed_count",
    NodeState.FUTILE.value: "futile_count",
}


@dataclass(frozen=True, slots=True)
class Each:
    """A column that gets a value of its own for each node, with its SQL type.

    `fact` names it in the event, if the event tells it.
    """

    column: str
    type: str
    values: Sequence[Any]
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: ids, and by how much the DAGs' counters change, together and for each."""

    ids: list[int]
    counts: Counter[str]
    by_dag: Mapping[int, Counter[str]] = field(default_factory=dict)
    #: Whether some that stand beside the others, which nothing counts, are ready now.
    is_beside_ready: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A move that the server may still be at."""

    cursor: CursorWrapper
    target: str

    def moved(self) -> Moved:
        """Wait for its end; to be called once."""
        with self.cursor as cursor:
            return _counted(cursor.fetchall(), self.target)


def send(
    event: str,
    node_ids: Collection[int],
    *,
    dag_id: int | Collection[int],
    actor: Actor,
    reason: str = "",
    cause: str = "",
    source: str | None = None,
    each: Each | None = None,
    facts: Mapping[str, Any] | None = None,
    expressions: Mapping[str, str] | None = None,
    forgets: bool = False,
    **changes: Any,
) -> Sent:
    """Begin to move the nodes that are in a source state of `event`, with one event for each.

    Inside of `wms.core.database.statements.sent_ahead` it does not wait for the server. `source`
    narrows the source states to one, which is faster. `changes` are columns that all of them get;
    `expressions` likewise, as SQL of the code's own. With `forgets` their `NodeWork` is deleted.
    The caller holds the lock of the DAG's row, or of all of these, and adds the counts to it.
    Raises ReasonRequired.
    """
    step = NODE_TRANSITIONS[event]
    if step.needs_reason and not reason.strip():
        raise ReasonRequired(event)
    sets = [f"{name} = %(set_{name})s" for name in changes]
    sets += [f"{name} = {text}" for name, text in (expressions or {}).items()]
    values: dict[str, Any] = {
        "dags": [dag_id] if isinstance(dag_id, int) else list(dag_id),
        "event": event,
        "ids": whole_numbers(node_ids),
        "sources": sorted(step.sources),
        "target": step.target,
        "actor": actor.name,
        "reason": reason,
        "cause": str(cause),
        "topic": FAILURE_TOPIC,
        "facts": Jsonb({**actor.facts, **(facts or {})}),
        **{f"set_{name}": _value(value) for name, value in changes.items()},
    }
    source = _only_source(step.sources, source)
    if each is not None:
        is_whole = each.type == "bigint"
        values["values"] = (
            whole_numbers(each.values) if is_whole else [_value(value) for value in each.values]
        )
        sets.append(f"{each.column} = given.value")
    if step.target != NodeState.READY:
        sets.append("ready_rank = NULL")
    statement = sql.move_nodes(
        sets,
        value_type=each.type if each is not None else "",
        fact=each.fact if each is not None else "",
        is_from_one=bool(source),
        is_announced=event in FAILURES,
        forgets=forgets,
    )
    cursor = connection.cursor()
    cursor.execute(statement, {**values, "source": source})
    return Sent(cursor, step.target)


def move(event: str, node_ids: Collection[int], **options: Any) -> Moved:
    """Move nodes, see `send`, and wait until it is done."""
    return send(event, node_ids, **options).moved() if node_ids else Moved([], Counter())


def _only_source(sources: Collection[str], given: str | None) -> str | None:
    """The one state that the nodes come from, if that is known."""
    if given is not None:
        return given
    return next(iter(sources)) if len(sources) == 1 else None


def _value(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict) else value


def _counted(rows: Sequence[tuple[Any, ...]], target: str) -> Moved:
    by_dag: dict[int, Counter[str]] = defaultdict(Counter)
    is_beside_ready = False
    for (dag_id, was, kind, category), number in Counter(row[1:] for row in rows).items():
        if kind in COUNTED_KINDS:
            for name in _counters_of(was, kind, category):
                by_dag[dag_id][name] -= number
            for name in _counters_of(target, kind, category):
                by_dag[dag_id][name] += number
        elif target == NodeState.READY:
            is_beside_ready = True
    counts: Counter[str] = Counter()
    for each in by_dag.values():
        # Not a sum of counters, which would drop what falls.
        counts.update(each)
    return Moved([row[0] for row in rows], counts, by_dag, is_beside_ready)


def _counters_of(state: str, kind: str, category: str) -> list[str]:
    """What a node in some state counts in."""
    names = [_COUNTERS[state]] if state in _COUNTERS else []
    if state == NodeState.SUBMITTED and category:
        names.append(CATEGORY + category)
    if state == NodeState.SUBMITTED and kind == NodeKind.DATA:
        names.append(CATEGORY + DATA_CATEGORY)
    return names


@dataclass(frozen=True, slots=True)
class Released:
    """Children that are ready now; `special` are those of them that have features."""

    ids: list[int]
    special: list[int]
    counts: Counter[str]
    is_beside_ready: bool = False


def count_down(
    parents: Collection[int], *, dag_id: int, actor: Actor, rank: int, only_weak: bool = False
) -> Released:
    """Tell the children that these parents have ended; those that wait for none more are ready.

    With `only_weak` only the children that wait for the mere end are told.
    """
    if not parents:
        return Released([], [], Counter())
    with connection.cursor() as cursor:
        cursor.execute(
            sql.count_down(only_weak=only_weak),
            {"parents": whole_numbers(parents), "dag": dag_id, "actor": actor.name, "rank": rank},
        )
        rows = cursor.fetchall()
    counted = sum(kind in COUNTED_KINDS for _, kind, _ in rows)
    return Released(
        ids=[row[0] for row in rows],
        special=[row[0] for row in rows if row[2]],
        counts=Counter(ready_count=counted),
    )


def give_up_below(failed: Collection[int], *, dag_id: int, actor: Actor) -> Moved:
    """Make everything futile that cannot run because these nodes failed for good."""
    if not failed:
        return Moved([], Counter())
    with connection.cursor() as cursor:
        cursor.execute(sql.FIND_FUTILE, {"failed": list(failed)})
        below = [row[0] for row in cursor.fetchall()]
    return move(
        "give up",
        below,
        dag_id=dag_id,
        actor=actor,
        reason="an ancestor of the node has failed",
        cause=NodeCause.ANCESTOR,
    )
