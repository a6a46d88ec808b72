"""Rows of `NodeWork`: what the engine notes of nodes beyond one job, and which nodes need none.

A node is plain while all that becomes of it follows from the end of its one job: it has no
features, is no provisioner, and has no `NodeWork`. The engine settles the ends of plain nodes by
the thousands without a look at them. The first work that is noted of a node makes it one that is
looked at, for good: that is never wrong, only slower. Also the placement requests and inner DAGs of
nodes, and provisioners that are not ready.

The caller of everything here holds the lock of the DAG's row, which covers its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from wms.dags.models import Dag, Node, NodeWork
from wms.dags.states import NodeKind


def begins_plain(kind: NodeKind, features: object) -> bool:
    """Whether a new node of this kind is plain; `features` are empty if it has none.

    What a provisioner says counts more than its end, and both may be told in one round.
    """
    return not features and kind is not NodeKind.PROVISIONER


def work_of(node: Node) -> NodeWork:
    """The work of a node that was read with it; if it has none, an empty one that is not stored."""
    known: NodeWork | None = getattr(node, "work", None)
    if known is None:
        known = node.work = NodeWork(node=node)
    return known


def write_work(works: Sequence[NodeWork], *columns: str) -> None:
    """Store these columns of the works; the others stay as they were, or have their defaults."""
    if not works:
        return
    NodeWork.objects.bulk_create(
        works,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["node"],
        update_fields=columns,
    )
    nodes = [work.node_id for work in works]
    Node.objects.filter(pk__in=nodes, is_plain=True).update(is_plain=False)


def requests_of_nodes(nodes: Iterable[Node]) -> list[int]:
    """The placement requests that these nodes run; one query."""
    works = NodeWork.objects.filter(node__in=list(nodes), request__isnull=False)
    return list(works.order_by("request").values_list("request_id", flat=True))


def inner_of_nodes(nodes: Iterable[Node]) -> list[int]:
    """The DAGs inside of these nodes, by rising ids; one query."""
    works = NodeWork.objects.filter(node__in=list(nodes), inner_dag__isnull=False)
    return list(works.order_by("inner_dag").values_list("inner_dag_id", flat=True))


def not_provisioned(*dags: Dag) -> QuerySet[Node]:
    """The provisioners of DAGs that have not said that they are ready."""
    provisioners = Node.objects.filter(dag__in=dags, kind=NodeKind.PROVISIONER)
    return provisioners.exclude(work__is_provisioned=True)
