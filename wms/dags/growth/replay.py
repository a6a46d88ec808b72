"""Growth of a DAG by its log, compared with its rows: which nodes it grew by, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wms.dags.engine.node_features import features_of
from wms.dags.growth.passes import verdict_of_pass
from wms.dags.growth.records import GROW_EVENT
from wms.dags.joins.outcomes import FACT
from wms.dags.models import Dag, DagEvent, Growth, Node, NodeEvent
from wms.dags.states import COUNTED_KINDS, GrowthKind, NodeState


def growth_faults(dag: Dag) -> Iterator[str]:
    """Differences of a DAG's insertions, and of its number of nodes, from what its log tells."""
    counted = Node.objects.filter(dag=dag, kind__in=COUNTED_KINDS).count()
    if counted != dag.node_count:
        yield f"DAG: stored {dag.node_count} nodes, and there are {counted}"
    told = [
        (
            facts["number"],
            facts["kind"],
            facts.get("path", ""),
            facts["first"],
            facts["count"],
            facts.get("node"),
        )
        for facts in DagEvent.objects.filter(dag=dag, event=GROW_EVENT)
        .order_by("pk")
        .values_list("facts", flat=True)
    ]
    columns = ("number", "kind", "path", "first_ordinal", "node_count", "node__name")
    stored = list(Growth.objects.filter(dag=dag).order_by("number").values_list(*columns))
    if told != stored:
        yield f"DAG: stored the insertions {stored}, by the log {told}"
    if told:
        first = told[0][3]
        ordinals = Node.objects.filter(dag=dag, ordinal__gte=first).order_by("ordinal")
        by_log = [place for _, _, _, at, count, _ in told for place in range(at, at + count)]
        if list(ordinals.values_list("ordinal", flat=True)) != by_log:
            yield f"DAG: the places of the nodes from {first} on are not those of the log"
        yield from _pass_faults(dag)


def _pass_faults(dag: Dag) -> Iterator[str]:
    """Passes that followed a node of whose outcome WHILE was not true."""
    followed = Growth.objects.filter(dag=dag, kind=GrowthKind.PASS).values("node_id")
    nodes = Node.objects.in_bulk([row["node_id"] for row in followed])
    events = NodeEvent.objects.filter(dag=dag, node__in=list(nodes), to_state=NodeState.DONE)
    ends: dict[int, list[dict[str, Any]]] = {pk: [] for pk in nodes}
    for node_id, facts in events.order_by("pk").values_list("node_id", "facts"):
        ends[node_id].append(facts)
    for pk, node in nodes.items():
        rule = features_of(node.features).repeat
        outcomes = [facts[FACT] for facts in ends[pk] if FACT in facts]
        # A run from a rescue was told of the passes that there were.
        if not outcomes or rule is None:
            continue
        if not any(verdict_of_pass(rule, outcome).holds for outcome in outcomes):
            yield f"node {node.name}: a pass follows it, and by the log WHILE is not true"
