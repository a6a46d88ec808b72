"""Selectors of gates: those of a DAG that wait, events of their beginning, and whom a gate asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import Q

from wms.core.models import User
from wms.dags.engine.gates import gate_of
from wms.dags.models import Dag, Node, NodeEvent
from wms.dags.states import NodeKind, NodeState

#: So many people are told of one gate.
MAX_ASKED = 200
#: Limit of waiting gates that are listed.
_LISTED = 20


def waiting_gates(dag: Dag) -> list[Node]:
    """Gates of a DAG that wait, up to 20; no query for a DAG without ready nodes."""
    if not dag.ready_count:
        return []
    gates = Node.objects.filter(
        dag=dag, kind=NodeKind.GATE, state=NodeState.READY, work__waits_since__isnull=False
    )
    return list(gates.only("name", "state_reason").order_by("ordinal")[:_LISTED])


def waits_of(announced: Iterable[tuple[int, int]]) -> list[NodeEvent]:
    """Events, given by DAG and event, of gates that wait still; with their nodes and DAGs."""
    by_dag: dict[int, list[int]] = defaultdict(list)
    for dag_id, event_id in announced:
        by_dag[dag_id].append(event_id)
    if not by_dag:
        return []
    # An event is found within its DAG: there is no index of the ids alone.
    chosen = Q()
    for dag_id, event_ids in by_dag.items():
        chosen |= Q(dag=dag_id, pk__in=event_ids)
    events = NodeEvent.objects.filter(chosen, node__state=NodeState.READY)
    return list(events.select_related("dag__owner", "node__work").order_by("pk"))


def asked_by(gate: Node, owner_id: int) -> frozenset[int]:
    """People whom a gate of this owner's DAG asks to open it: those that it names, else the owner.

    Of a role those who have just that one are asked, the others may open it as well.
    """
    who = gate_of(gate).who
    if not who:
        return frozenset({owner_id})
    named: dict[str, list[str]] = defaultdict(list)
    for each in who:
        kind, name = each.split(":", 1)
        named[kind].append(name)
    people = User.objects.filter(
        Q(username__in=named["user"])
        | Q(role__in=named["role"])
        | Q(pk__in=User.objects.filter(accounting_groups__name__in=named["group"]).values("pk")),
        is_active=True,
    )
    return frozenset(people.order_by("pk").values_list("pk", flat=True)[:MAX_ASKED])
