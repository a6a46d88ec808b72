"""Recomputing a DAG from its event log alone, and comparing: the log tells all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from wms.core.models import EventRecord
from wms.core.transitions import TransitionTable
from wms.dags.models import Dag, DagEvent, Node, NodeEvent
from wms.dags.states import DAG_TRANSITIONS, NODE_TRANSITIONS, DagState, NodeState


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The state of a DAG by its log; `differences` tells where the rows disagree."""

    state: str
    node_states: dict[int, str]
    differences: tuple[str, ...]


def rebuild_dag(dag_id: int) -> Rebuilt:
    """Replay the events of a DAG and of its nodes; compare with the rows. Changes nothing."""
    dag = Dag.objects.get(pk=dag_id)
    faults: list[str] = []
    dag_events = DagEvent.objects.filter(dag_id=dag_id).exclude(event="submit").order_by("pk")
    state = _replay("DAG", DagState.IDLE, dag_events, DAG_TRANSITIONS, faults)
    nodes = {node.pk: node for node in Node.objects.filter(dag_id=dag_id)}
    events: dict[int, list[NodeEvent]] = {pk: [] for pk in nodes}
    for event in NodeEvent.objects.filter(dag_id=dag_id).order_by("pk"):
        events[event.node_id].append(event)
    states = {
        pk: _replay(f"node {node.name}", NodeState.WAITING, events[pk], NODE_TRANSITIONS, faults)
        for pk, node in nodes.items()
    }
    if state != dag.state:
        faults.append(f"DAG: stored {dag.state}, by the log {state}")
    faults += [
        f"node {node.name}: stored {node.state}, by the log {states[pk]}"
        for pk, node in nodes.items()
        if node.state != states[pk]
    ]
    faults += _counter_faults(dag, states.values())
    return Rebuilt(state=state, node_states=states, differences=tuple(faults))


def _replay(
    what: str,
    start: str,
    events: Iterable[EventRecord],
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
        NodeState.DONE: dag.done_count,
        NodeState.FAILED: dag.failed_count,
        NodeState.FUTILE: dag.futile_count,
        NodeState.SUBMITTED: dag.submitted_count,
    }
    return [
        f"DAG: stored {number} nodes {state.value}, by the log {counts[state.value]}"
        for state, number in stored.items()
        if number != counts[state.value]
    ]
