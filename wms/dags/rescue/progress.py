"""Progress of a DAG's nodes as a rescue file states it (done, retries left), read from the rows.

Also what the DAG grew by.
"""

from __future__ import annotations

from django.db.models import BooleanField, Exists, OuterRef, Q, Value
from django.db.models.expressions import Case, When

from wms.dags.joins.selectors import kept_outcomes
from wms.dags.models import Dag, Edge, Growth, Node
from wms.dags.rescue.text import GrowthLine, NodeProgress
from wms.dags.states import NodeKind, NodeState

_UNLESS_EXIT = "features__unless_exit"


def growth_lines(dag: Dag) -> list[GrowthLine]:
    """Insertions into a DAG, in their order. One query."""
    rows = Growth.objects.filter(dag=dag).order_by("number")
    columns = ("kind", "node__name", "path", "after", "before")
    return [
        GrowthLine(kind, node or "", path, tuple(after), tuple(before))
        for kind, node, path, after, before in rows.values_list(*columns)
    ]


def progress_of(dag: Dag) -> list[NodeProgress]:
    """Progress of every node in the order of the DAG, without SERVICE nodes.

    One query, and two more for the outcomes in a DAG with conditions.
    """
    arcs = Edge.objects.filter(parent=OuterRef("pk"))
    has_only_weak = Case(
        # Asked of failed nodes only: a DAG has many nodes, and few of them fail.
        When(
            Q(state=NodeState.FAILED),
            then=Exists(arcs) & ~Exists(arcs.filter(is_weak=False)),
        ),
        default=Value(False),
        output_field=BooleanField(),
    )
    outcomes = kept_outcomes(dag)
    rows = (
        Node.objects.filter(dag=dag)
        .exclude(kind=NodeKind.SERVICE)
        .annotate(has_only_weak=has_only_weak)
        .order_by("ordinal")
        .values_list(
            "name", "state", "has_only_weak", "max_retries", "retry_number", _UNLESS_EXIT, "kind"
        )
    )
    return [
        NodeProgress(
            name,
            state == NodeState.DONE,
            state == NodeState.FAILED,
            only_weak,
            max_retries,
            retry_number,
            unless_exit,
            kind in (NodeKind.FINAL, NodeKind.PROVISIONER),
            outcomes.get(name, ""),
        )
        for name, state, only_weak, max_retries, retry_number, unless_exit, kind in rows.iterator(
            chunk_size=5000
        )
    ]
