"""Rebuild of a DAG's state from its events alone, compared with its rows (an audit).

Nothing is changed; the differences are returned. Also the control loop auditor, which does this for
the DAGs that changed last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from wms.core.transitions import TransitionTable
from wms.dags.engine.settling.tolerance import FACT, tolerated_by_category
from wms.dags.growth.records import GROW_EVENT
from wms.dags.growth.replay import growth_faults
from wms.dags.joins.replay import join_faults
from wms.dags.models import Dag, DagEvent, Edge, Node, NodeEvent
from wms.dags.states import (
    COUNTED_KINDS,
    DAG_TRANSITIONS,
    NODE_TRANSITIONS,
    DagState,
    NodeState,
)

#: So many DAGs, those that changed last, are looked at by the loop.
_SAMPLE = 20
_CHUNK = 5000
#: Events that leave a DAG's state as it is.
_WITHOUT_STEP = ("submit", GROW_EVENT)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """State of a DAG by its log; `differences` are those of the rows."""

    state: str
    node_states: dict[int, str]
    differences: tuple[str, ...]


class _Stored(NamedTuple):
    """State of a node by its row."""

    name: str
    kind: str
    state: str
    retry_number: int
    unfinished_parents: int
    category: str


@dataclass(slots=True)
class _Replayed:
    """State of a node by the log."""

    state: str = NodeState.WAITING.value
    retries: int = 0
    is_tolerated: bool = False


def _counted_state(node: _Replayed) -> str:
    """State as which the nodes after this one count it: a tolerated failure is a good end."""
    is_tolerated = node.is_tolerated and node.state == NodeState.FAILED
    return NodeState.DONE.value if is_tolerated else node.state


def rebuild_dag(dag_id: int) -> Rebuilt:
    """Replay the events of a DAG and of its nodes; compare with the rows. Changes nothing.

    States, retries, what each node waits for, conditions and the counters are all recomputed.
    """
    dag = Dag.objects.get(pk=dag_id)
    faults: list[str] = []
    dag_events = (
        DagEvent.objects.filter(dag_id=dag_id).exclude(event__in=_WITHOUT_STEP).order_by("pk")
    )
    state = _replay("DAG", DagState.IDLE, dag_events, DAG_TRANSITIONS, faults)
    if state != dag.state:
        faults.append(f"DAG: stored {dag.state}, by the log {state}")
    stored = {
        pk: _Stored(*rest)
        for pk, *rest in Node.objects.filter(dag_id=dag_id).values_list("pk", *_Stored._fields)
    }
    replayed = _replay_nodes(dag, stored, faults)
    faults += _node_faults(stored, replayed)
    faults += _parent_faults(dag_id, stored, replayed)
    faults += join_faults(
        dag,
        {pk: _counted_state(each) for pk, each in replayed.items()},
        {pk: each.unfinished_parents for pk, each in stored.items()},
    )
    faults += _tolerance_faults(dag, stored, replayed)
    faults += growth_faults(dag)
    faults += _counter_faults(
        dag, (replayed[pk].state for pk, node in stored.items() if node.kind in COUNTED_KINDS)
    )
    return Rebuilt(
        state=state,
        node_states={pk: each.state for pk, each in replayed.items()},
        differences=tuple(faults),
    )


def run_cycle(now: datetime) -> dict[str, Any]:
    """Rebuild the DAGs that changed last in the past day, and report where rows and log differ."""
    recent = (
        Dag.objects.filter(state_since__gte=now - timedelta(days=1))
        .order_by("-state_since")
        .values_list("pk", flat=True)[:_SAMPLE]
    )
    differing = {}
    for dag_id in recent:
        differences = rebuild_dag(dag_id).differences
        if differences:
            differing[str(dag_id)] = list(differences[:10])
    return {"rebuilt": len(recent), "differing": differing}


def _replay_nodes(dag: Dag, stored: dict[int, _Stored], faults: list[str]) -> dict[int, _Replayed]:
    nodes = {pk: _Replayed() for pk in stored}
    tolerated = _tolerated_failures(dag)
    events = NodeEvent.objects.filter(dag=dag).order_by("pk")
    rows = events.values_list("pk", "node_id", "event")
    for pk, node_id, event in rows.iterator(chunk_size=_CHUNK):
        node, step = nodes[node_id], NODE_TRANSITIONS[event]
        if node.state not in step.sources:
            name = stored[node_id].name
            faults.append(f"node {name}: event {pk} ({event}) cannot follow {node.state}")
        node.state = step.target
        node.is_tolerated = pk in tolerated
        if event == "retry":
            node.retries += 1
        elif event == "rerun":
            node.retries = 0
    return nodes


def _tolerated_failures(dag: Dag) -> set[int]:
    """Events of failures that were tolerated."""
    if not dag.tolerances:
        return set()
    failures = NodeEvent.objects.filter(dag=dag, event__in=("fail", "mark failed"))
    return {pk for pk, facts in failures.values_list("pk", "facts") if facts.get(FACT)}


def _tolerance_faults(
    dag: Dag, stored: dict[int, _Stored], replayed: dict[int, _Replayed]
) -> list[str]:
    """Categories whose number of tolerated nodes is not what the log says."""
    by_log = Counter(stored[pk].category for pk, node in replayed.items() if node.is_tolerated)
    by_row = tolerated_by_category(dag)
    return [
        f"DAG: stored {by_row.get(category, 0)} tolerated nodes of category {category}, by the "
        f"log {by_log[category]}"
        for category in sorted({*by_log, *by_row})
        if by_row.get(category, 0) != by_log[category]
    ]


def _node_faults(stored: dict[int, _Stored], replayed: dict[int, _Replayed]) -> list[str]:
    faults = []
    for pk, node in stored.items():
        by_log = replayed[pk]
        if node.state != by_log.state:
            faults.append(f"node {node.name}: stored {node.state}, by the log {by_log.state}")
        if node.retry_number != by_log.retries:
            faults.append(
                f"node {node.name}: stored {node.retry_number} retries, by the log {by_log.retries}"
            )
    return faults


def _parent_faults(
    dag_id: int, stored: dict[int, _Stored], replayed: dict[int, _Replayed]
) -> list[str]:
    """Nodes whose number of unfinished parents is not what their parents' states say.

    Those with joins wait for them.
    """
    unfinished: Counter[int] = Counter()
    joined: set[int] = set()
    arcs = Edge.objects.filter(parent__dag_id=dag_id).values_list(
        "parent_id", "child_id", "is_weak", "is_joined"
    )
    for parent, child, is_weak, is_joined in arcs.iterator(chunk_size=_CHUNK):
        if is_joined:
            joined.add(child)
            continue
        state = _counted_state(replayed[parent])
        has_ended = state == NodeState.DONE or (is_weak and state == NodeState.FAILED)
        unfinished[child] += not has_ended
    return [
        f"node {node.name}: waits for {node.unfinished_parents} parents, by the log for "
        f"{unfinished[pk]}"
        for pk, node in stored.items()
        if pk not in joined and node.unfinished_parents != unfinished[pk]
    ]


def _replay(
    what: str,
    start: str,
    events: Iterable[DagEvent],
    transitions: TransitionTable,
    faults: list[str],
) -> str:
    state = str(start)
    for record in events:
        step = transitions[record.event]
        if state not in step.sources:
            faults.append(f"{what}: event {record.pk} ({record.event}) cannot follow {state}")
        state = step.target
    return state


def _counter_faults(dag: Dag, states: Iterable[str]) -> list[str]:
    counts = Counter(states)
    stored = {
        NodeState.READY: dag.ready_count,
        NodeState.DONE: dag.done_count,
        NodeState.FAILED: dag.failed_count,
        NodeState.FUTILE: dag.futile_count,
        NodeState.SKIPPED: dag.skipped_count,
        NodeState.SUBMITTED: dag.submitted_count,
    }
    return [
        f"DAG: stored {number} nodes {state.value}, by the log {counts[state.value]}"
        for state, number in stored.items()
        if number != counts[state.value]
    ]
