"""Record of an insertion: counters and tolerances of the DAG, its event, the row that tells of it.

Also the room that the limits leave, and the next place and number. The caller of everything here
holds the lock of the DAG's row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.dags.engine.round import Round
from wms.dags.language.commands.success import tolerated_among
from wms.dags.models import Dag, DagEvent, Growth, Node
from wms.dags.states import GrowthKind

GROW_EVENT = "grow"
#: Limit of names in an event; the nodes have places of their own.
_NAMES_TOLD = 100


@dataclass(frozen=True, slots=True)
class Insertion:
    """Nodes that were inserted after a node, by their names in their order, and why."""

    kind: GrowthKind
    node: Node | None
    names: Sequence[str]
    reason: str
    categories: Collection[str] = ()
    #: The copy of the fragment.
    path: str = ""
    #: Names of the nodes around a fragment that somebody added.
    after: Sequence[str] = ()
    before: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def next_ordinal(dag: Dag) -> int:
    """Place of the next node of a DAG."""
    last = Node.objects.filter(dag=dag).aggregate(last=Max("ordinal"))["last"]
    return int(last or 0) + 1


def room_fault(dag: Dag, count: int) -> str:
    """Why a DAG cannot have so many nodes more; empty if it can."""
    most = conf().max_dag_nodes
    if dag.node_count + count > most:
        return f"a DAG has at most {most} nodes, those that it grew by included"
    return ""


def record_insertions(round_: Round, first_ordinal: int, insertions: Sequence[Insertion]) -> None:
    """Let the DAG's row follow nodes that were stored, and write what happened."""
    dag = round_.dag
    dag.node_count += sum(len(each.names) for each in insertions)
    dag.tolerances = _tolerances(dag, {name for each in insertions for name in each.categories})
    Dag.objects.filter(pk=dag.pk).update(node_count=dag.node_count, tolerances=dag.tolerances)
    write_insertions(dag, first_ordinal, insertions, actor=round_.actor)


def write_insertions(
    dag: Dag, first_ordinal: int, insertions: Sequence[Insertion], *, actor: Actor
) -> None:
    """Write the rows and the events of insertions whose nodes have the places from there on."""
    number = Growth.objects.filter(dag=dag).aggregate(last=Max("number"))["last"] or 0
    rows, events = [], []
    for each in insertions:
        number += 1
        rows.append(
            Growth(
                dag=dag,
                number=number,
                kind=each.kind,
                node=each.node,
                path=each.path,
                after=list(each.after),
                before=list(each.before),
                first_ordinal=first_ordinal,
                node_count=len(each.names),
            )
        )
        facts = {"kind": each.kind.value, "number": number, "first": first_ordinal}
        facts |= {"path": each.path} if each.path else {}
        facts |= {"count": len(each.names), "nodes": list(each.names[:_NAMES_TOLD])}
        if each.node is not None:
            facts["node"] = each.node.name
        facts |= {"after": list(each.after)} if each.after else {}
        facts |= {"before": list(each.before)} if each.before else {}
        events.append(
            DagEvent(
                dag=dag,
                event=GROW_EVENT,
                from_state=dag.state,
                to_state=dag.state,
                actor=actor.name,
                reason=each.reason,
                facts={**facts, **each.facts, **actor.facts},
            )
        )
        first_ordinal += len(each.names)
    Growth.objects.bulk_create(rows, batch_size=1000)
    DagEvent.objects.bulk_create(events, batch_size=1000)


def _tolerances(dag: Dag, categories: Collection[str]) -> dict[str, Any]:
    """Tolerances of the DAG, of the nodes that its categories have now."""
    changed = [name for name in categories if name in dag.tolerances]
    tolerances: dict[str, Any] = dag.tolerances
    if not changed:
        return tolerances
    nodes = Node.objects.filter(dag=dag, category__in=changed).order_by()
    sizes = dict(nodes.values_list("category").annotate(Count("pk")))
    return {
        **tolerances,
        **{
            name: {"given": given, "most": tolerated_among(given, size)}
            for name, size in sizes.items()
            for given in [tolerances[name]["given"]]
        },
    }
