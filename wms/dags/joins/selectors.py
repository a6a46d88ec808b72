"""Selectors of conditions and joins: failures that are handled, kept outcomes, arcs of a node."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from wms.dags.joins.conditions import ends_of
from wms.dags.models import Condition, Dag, Join, Node
from wms.dags.states import COUNTED_KINDS, NodeState

#: Limit of conditions that are listed.
_SHOWN = 100


def unhandled_failures(dag: Dag) -> QuerySet[Node]:
    """Failed nodes of a DAG for whose failures it is failed: no condition after them holds."""
    failed = Node.objects.filter(dag=dag, state=NodeState.FAILED, kind__in=COUNTED_KINDS)
    if not dag.has_joins:
        return failed
    return failed.exclude(Exists(Condition.objects.filter(parent=OuterRef("pk"), holds=True)))


def has_unhandled() -> Q:
    """Condition on DAGs with failed nodes: one of these failures is neither handled nor tolerated.

    The nodes are looked at only where the DAG has such rules.
    """
    handled = Condition.objects.filter(parent=OuterRef("pk"), holds=True)
    failed = Node.objects.filter(
        dag=OuterRef("pk"), state=NodeState.FAILED, kind__in=COUNTED_KINDS
    ).exclude(Exists(handled))
    return Q(has_joins=False, tolerances={}) | Q(Exists(failed.exclude(work__is_tolerated=True)))


def has_failed(dag: Dag) -> bool:
    """Whether a node of the DAG has failed for good, and nothing handles it."""
    return bool(dag.failed_count) and (not dag.has_joins or unhandled_failures(dag).exists())


def kept_outcomes(dag: Dag) -> dict[str, str]:
    """Outcomes, as JSON, of the nodes whose ends count in a further run, by name.

    These have conditions on arcs from them, and are done or failed and handled.
    """
    if not dag.has_joins:
        return {}
    holds = Condition.objects.filter(parent=OuterRef("pk"), holds=True)
    any_condition = Condition.objects.filter(parent=OuterRef("pk"))
    ended = Q(state=NodeState.DONE) | (Q(state=NodeState.FAILED) & Exists(holds))
    nodes = Node.objects.filter(Exists(any_condition), ended, dag=dag)
    names = dict(nodes.values_list("pk", "name"))
    return {
        names[pk]: json.dumps(end.outcome, sort_keys=True) for pk, end in ends_of(names).items()
    }


@dataclass(frozen=True, slots=True)
class ArcView:
    """Condition of an arc with the node at its other end, and what came of it."""

    node_id: int
    name: str
    expression: str
    holds: bool | None
    reason: str


def conditions_before(node: Node) -> Sequence[Condition]:
    """Conditions of the arcs to a node read with its DAG, with their parents: at most 100."""
    if not node.dag.has_joins:
        return ()
    conditions = Condition.objects.filter(child=node).select_related("parent")
    return list(conditions.order_by("parent__ordinal")[:_SHOWN])


def conditions_of(node: Node) -> tuple[Sequence[ArcView], Sequence[ArcView]]:
    """Conditions of the arcs to a node, and of those from it; two queries, or none."""
    if not node.dag.has_joins:
        return (), ()
    return _views(Condition.objects.filter(child=node), "parent"), _views(
        Condition.objects.filter(parent=node), "child"
    )


def _views(conditions: QuerySet[Condition], end: str) -> list[ArcView]:
    rows = conditions.order_by(f"{end}__ordinal").values_list(
        f"{end}_id", f"{end}__name", "expression", "holds", "reason"
    )[:_SHOWN]
    return [ArcView(*row) for row in rows]


def join_of(node: Node) -> Join | None:
    """Join of a node read with its DAG; None where all its parents are simply waited for."""
    return Join.objects.filter(node=node).first() if node.dag.has_joins else None


@dataclass(frozen=True, slots=True)
class DrawnCondition:
    """Condition of an arc in a drawing; `holds` is None until the parent has ended."""

    expression: str
    holds: bool | None = None
    reason: str = ""


def conditions_by_arc(dag: Dag) -> Mapping[tuple[int, int], DrawnCondition]:
    """Conditions of the arcs of a DAG that have one, by the ids of parent and child."""
    if not dag.has_joins:
        return {}
    rows = Condition.objects.filter(parent__dag=dag).order_by("parent_id", "child_id")
    columns = ("parent_id", "child_id", "expression", "holds", "reason")
    return {
        (parent, child): DrawnCondition(*told)
        for parent, child, *told in rows.values_list(*columns).iterator()
    }


def partial_joins(dag: Dag) -> Mapping[int, Join]:
    """Joins of a DAG that wait for fewer arcs than they have (JOIN ANY, JOIN n), by node id."""
    if not dag.has_joins:
        return {}
    joins = Join.objects.filter(node__dag=dag, needed_count__lt=F("arc_count"))
    return {join.node_id: join for join in joins.order_by("node_id")}
