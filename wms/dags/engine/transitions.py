"""Moves of nodes by their state machine, thousands in one statement, and the DAG's counters.

Also the count of unfinished parents, descendants made futile, and the topic that announces
failures. Every caller holds the lock of the DAG's row, which guards all of its nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from wms.core.actors import Actor
from wms.core.database.actor_field import stored_actor
from wms.core.database.statements import whole_numbers
from wms.core.models import InboxEntry
from wms.core.statemachine import Sent, StateMachine
from wms.dags.engine import sql
from wms.dags.models import Node, NodeEvent, NodeWork
from wms.dags.states import (
    COUNTED_KINDS,
    NODE_TRANSITIONS,
    NodeCause,
    NodeKind,
    NodeState,
)

#: Inbox of events of nodes that went wrong, and these events.
FAILURE_TOPIC = "failed-nodes"
FAILURES = frozenset({"fail", "retry"})
#: What the submitted nodes of a category are counted under, beside the counters.
CATEGORY = "category:"
#: Stands for all DATA nodes, which the limits of jobs do not count; no name has a blank.
DATA_CATEGORY = " data"
#: FINAL, SERVICE and PROVISIONER nodes that are ready now, which no counter counts.
AUXILIARY_READY = "auxiliary ready"
#: The event of a node whose last unfinished parent has ended.
_RELEASE = "make ready"
#: The DAG's counters that follow the states of its nodes.
_COUNTERS = {
    NodeState.READY.value: "ready_count",
    NodeState.SUBMITTED.value: "submitted_count",
    NodeState.DONE.value: "done_count",
    NodeState.FAILED.value: "failed_count",
    NodeState.FUTILE.value: "futile_count",
    NodeState.SKIPPED.value: "skipped_count",
}


_NODES = StateMachine(
    model=Node,
    event_model=NodeEvent,
    subject="node",
    transitions=NODE_TRANSITIONS,
    observed=FAILURES,
    observers=FAILURE_TOPIC,
    has_causes=True,
    kind=InboxEntry.Kind.NODE_EVENT,
    parent="dag",
    columns=("kind", "category"),
    attached=NodeWork,
)


@dataclass(frozen=True, slots=True)
class Moved:
    """Ids of the nodes that moved, and the changes of the counters by DAG."""

    ids: list[int] = field(default_factory=list)
    by_dag: Mapping[int, Counter[str]] = field(default_factory=dict)


def send(
    event: str, node_ids: Collection[int], *, dag_id: int | Sequence[int], **options: Any
) -> Sent:
    """Begin to move nodes of a DAG or of some; options are those of `StateMachine.send`.

    The caller holds the lock of the DAGs' rows, and adds the counts to them. Raises ReasonRequired.
    """
    if NODE_TRANSITIONS[event].target != NodeState.READY:
        options["ready_rank"] = None
    parents = [dag_id] if isinstance(dag_id, int) else list(dag_id)
    return _NODES.send(event, node_ids, parents=parents, **options)


def moved_by(sent: Sent) -> Moved:
    """Nodes that a move has moved; waits for its end, and is to be called once."""
    return _counted(sent.rows(), sent.target)


def move(event: str, node_ids: Collection[int], **options: Any) -> Moved:
    """Move nodes, see `send`, and wait until it is done."""
    return moved_by(send(event, node_ids, **options)) if node_ids else Moved()


def _counted(rows: Sequence[tuple[Any, ...]], target: str) -> Moved:
    by_dag: dict[int, Counter[str]] = defaultdict(Counter)
    for (dag_id, was, kind, category), number in Counter(row[1:] for row in rows).items():
        if kind in COUNTED_KINDS:
            for name in _counters_of(was, kind, category):
                by_dag[dag_id][name] -= number
            for name in _counters_of(target, kind, category):
                by_dag[dag_id][name] += number
        elif target == NodeState.READY:
            by_dag[dag_id][AUXILIARY_READY] += number
    return Moved([row[0] for row in rows], by_dag)


def _counters_of(state: str, kind: str, category: str) -> list[str]:
    """Names of the counters that a node in some state counts in."""
    names = [_COUNTERS[state]] if state in _COUNTERS else []
    if state == NodeState.SUBMITTED and category:
        names.append(CATEGORY + category)
    if state == NodeState.SUBMITTED and kind == NodeKind.DATA:
        names.append(CATEGORY + DATA_CATEGORY)
    return names


@dataclass(frozen=True, slots=True)
class Released:
    """Children that are ready now, and the changes of the DAGs' counters.

    `special` are those of them that have features, by DAG.
    """

    ids: list[int]
    special: Mapping[int, list[int]]
    by_dag: Mapping[int, Counter[str]]


def count_down(
    parents: Collection[int], *, ranks: Mapping[int, int], actor: Actor, only_weak: bool = False
) -> Released:
    """Count the ends of these parents for their children; those that wait for none more are ready.

    `ranks` are the ranks of the latter, by the DAGs of the parents. With `only_weak` only children
    over weak arcs, which wait for the mere end.
    """
    if not parents:
        return Released([], {}, {})
    with connection.cursor() as cursor:
        cursor.execute(
            sql.count_down(only_weak=only_weak),
            {
                "parents": whole_numbers(parents),
                "dags": whole_numbers(ranks),
                "ranks": whole_numbers(ranks.values()),
                "event": _RELEASE,
                "source": NodeState.WAITING,
                "target": NODE_TRANSITIONS[_RELEASE].target,
                "actor": stored_actor(actor.name),
                "reason": "",
                "cause": "",
                "facts": "{}",
            },
        )
        rows = cursor.fetchall()
    special: dict[int, list[int]] = defaultdict(list)
    by_dag: dict[int, Counter[str]] = defaultdict(Counter)
    for node_id, dag_id, kind, is_special in rows:
        by_dag[dag_id]["ready_count"] += kind in COUNTED_KINDS
        if is_special:
            special[dag_id].append(node_id)
    return Released([row[0] for row in rows], special, by_dag)


def give_up_below(failed: Collection[int], *, dag_id: int, actor: Actor) -> Moved:
    """Make the descendants futile that cannot run because these nodes failed for good."""
    if not failed:
        return Moved()
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
