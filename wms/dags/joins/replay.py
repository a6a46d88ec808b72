"""Joins and conditions computed from the log of a DAG, and compared with its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from wms.dags.joins.conditions import Verdict, ends_of, verdict_of
from wms.dags.models import Condition, Dag, Edge, Join, Node
from wms.dags.states import NodeState

_ENDED = (NodeState.DONE.value, NodeState.FAILED.value)
_HOLDS, _RULED_OUT, _LOST = "held", "ruled out", "lost"


def join_faults(
    dag: Dag, states: Mapping[int, str], waiting_for: Mapping[int, int]
) -> Iterator[str]:
    """Differences of conditions and joins from what the states by the log make of them.

    `states` are by the log, `waiting_for` the stored numbers of what each node waits for.
    """
    if not dag.has_joins:
        return
    names = dict(Node.objects.filter(dag=dag).values_list("pk", "name"))
    verdicts: dict[tuple[int, int], Verdict] = {}
    conditions = list(Condition.objects.filter(parent__dag=dag))
    ended = {each.parent_id for each in conditions if states[each.parent_id] in _ENDED}
    ends = ends_of(ended)
    for condition in conditions:
        arc = condition.parent_id, condition.child_id
        expected = None
        if condition.parent_id in ended:
            verdicts[arc] = verdict_of(condition.expression, ends[condition.parent_id])
            expected = verdicts[arc].holds
        if condition.holds is not expected:
            yield (
                f"arc {names[arc[0]]} -> {names[arc[1]]}: stored that it holds: "
                f"{condition.holds}, by the log: {expected}"
            )
    counts = _counts(dag, states, verdicts)
    for join in Join.objects.filter(node__dag=dag):
        stored = (join.held_count, join.ruled_out_count, join.lost_count)
        by_log = tuple(counts[join.node_id][each] for each in (_HOLDS, _RULED_OUT, _LOST))
        name = names[join.node_id]
        if stored != by_log:
            yield f"node {name}: stored {stored} arcs that hold or not, by the log {by_log}"
        waits = int(by_log[0] < join.needed_count)
        if states[join.node_id] == NodeState.WAITING and waiting_for[join.node_id] != waits:
            yield f"node {name}: waits for {waiting_for[join.node_id]}, by the log for {waits}"


def _counts(
    dag: Dag, states: Mapping[int, str], verdicts: Mapping[tuple[int, int], Verdict]
) -> Mapping[int, Counter[str]]:
    handled = {parent for (parent, _), verdict in verdicts.items() if verdict.holds}
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    arcs = Edge.objects.filter(parent__dag=dag, is_joined=True)
    for parent, child, is_weak in arcs.values_list("parent_id", "child_id", "is_weak"):
        state, verdict = states[parent], verdicts.get((parent, child))
        if state == NodeState.SKIPPED:
            counts[child][_RULED_OUT] += 1
        elif state == NodeState.FUTILE:
            counts[child][_LOST] += 1
        elif state in _ENDED:
            counts[child][_of_ended(state, verdict, is_weak, parent in handled)] += 1
    return counts


def _of_ended(state: str, verdict: Verdict | None, is_weak: bool, is_handled: bool) -> str:
    if verdict is not None:
        return _HOLDS if verdict.holds else _RULED_OUT
    if state == NodeState.DONE or is_weak:
        return _HOLDS
    return _RULED_OUT if is_handled else _LOST
