"""Insertion of a checked fragment into a DAG: its nodes, the arcs around it, counts and joins.

The nodes that it stands before wait for its last nodes, and its first ones for those that it
stands after. The caller of everything here holds the lock of the DAG's row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F

from wms.core.database.statements import whole_numbers
from wms.dags.engine.round import Round
from wms.dags.growth.fragments import Fragment, leaves_of, roots_of
from wms.dags.growth.records import Insertion, next_ordinal, record_insertions
from wms.dags.joins.deciding import recount
from wms.dags.joins.sql import MARK_ARCS, STORE_JOINS
from wms.dags.joins.storing import JoinPlan, plan_joins, store_joins
from wms.dags.language.spec import DagSpec
from wms.dags.models import Condition, Dag, Edge, Join, Node
from wms.dags.services.sql import FIND_WITH_DESCENDANTS
from wms.dags.states import GrowthKind
from wms.dags.submission.node_needs import with_more_needs
from wms.dags.submission.sql import COPY_ARCS
from wms.dags.submission.storing import store_graph

_SHOWN_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Following:
    """An arc to a node that is to wait for a fragment."""

    child: int
    is_weak: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fragment is inserted: behind some nodes, of which so many have not ended.

    The nodes of `before` wait for it. Of one that `takes_over`, they waited for the node behind
    which it is inserted.
    """

    behind: Sequence[int]
    open_count: int
    before: Sequence[Following]
    takes_over: bool = False


def arcs_to_hand_over(node: Node, *, has_joins: bool) -> list[Following]:
    """Arcs from a node that a fragment after it takes over: those that have no condition."""
    rows = Edge.objects.filter(parent=node).values_list("child_id", "is_weak")
    decided = set[int]()
    if has_joins:
        decided.update(Condition.objects.filter(parent=node).values_list("child_id", flat=True))
    return [Following(child, is_weak) for child, is_weak in rows if child not in decided]


def insert_fragment(
    round_: Round,
    fragment: Fragment,
    place: Place,
    *,
    kind: GrowthKind,
    node: Node | None,
    reason: str = "",
    after: Sequence[str] = (),
    before: Sequence[str] = (),
) -> None:
    """Store a fragment's nodes at this place, and let the DAG and what is below follow.

    The names of the nodes around it are kept where it follows no end of a node.
    """
    first = next_ordinal(round_.dag)
    if fragment.spec.nodes:
        _store(round_, fragment, place, first)
        _extend_dag(round_.dag, fragment)
    warnings = [str(each) for each in fragment.checked.warnings[:_SHOWN_WARNINGS]]
    insertion = Insertion(
        kind,
        node,
        list(fragment.spec.nodes),
        reason or f"the fragment {fragment.path}",
        categories={each.category for each in fragment.spec.nodes.values()} - {""},
        path=fragment.copy,
        after=after,
        before=before,
        facts={"warnings": warnings} if warnings else {},
    )
    record_insertions(round_, first, [insertion])


def _store(round_: Round, fragment: Fragment, place: Place, first: int) -> None:
    dag, spec = round_.dag, fragment.spec
    plan = _plan(round_, spec, place.behind)
    roots, leaves = roots_of(spec), leaves_of(spec)
    counts = Counter(spec.arcs.children)
    counts.update(dict.fromkeys(roots, place.open_count))
    ids = store_graph(
        dag,
        spec,
        fragment.checked.submit_files,
        plan=plan,
        unfinished_parents=[counts[at] for at in range(len(spec.nodes))],
        first_ordinal=first,
    )
    children = [each.child for each in place.before]
    if place.takes_over:
        Edge.objects.filter(parent__in=place.behind, child__in=children).delete()
    _copy_arcs((parent, ids[at], False) for parent in place.behind for at in roots)
    _copy_arcs((ids[at], each.child, each.is_weak) for at in leaves for each in place.before)
    if plan.joined:
        store_joins(dag, spec, plan, ids)
        if place.open_count < len(place.behind):
            # Some have ended, and are not counted any more by their ends.
            recount([ids[at] for at in plan.joined])
    more = len(leaves) - int(place.takes_over)
    _follow(round_, children, more, may_skip=not plan.joined.isdisjoint(leaves))


def _plan(round_: Round, spec: DagSpec, behind: Sequence[int]) -> JoinPlan:
    """Joins of a fragment: all of its nodes have one if a node that it is behind may be skipped."""
    plan = plan_joins(spec)
    if not round_.dag.has_joins or not behind:
        return plan
    may_skip = (
        Join.objects.filter(node__in=behind).exists()
        or Condition.objects.filter(parent__in=behind).exists()
    )
    return JoinPlan(frozenset(range(len(spec.nodes))), plan.parents) if may_skip else plan


def _copy_arcs(arcs: Iterable[tuple[int, int, bool]]) -> None:
    with connection.cursor() as cursor, cursor.copy(COPY_ARCS) as copy:
        for arc in arcs:
            copy.write_row(arc)


def _follow(round_: Round, children: Collection[int], more: int, *, may_skip: bool) -> None:
    """Let nodes wait for so many parents more; if these may be skipped, they may be, too."""
    joined = set[int]()
    if round_.dag.has_joins and children:
        joined.update(Join.objects.filter(node__in=children).values_list("node_id", flat=True))
    if joined:
        _widen_joins(joined, more)
        _mark_arcs(joined)
    others = set(children) - joined
    if may_skip and others:
        _join_below(others)
    elif more and others:
        waiting = Node.objects.filter(pk__in=others)
        waiting.update(unfinished_parents=F("unfinished_parents") + more)


def _widen_joins(node_ids: Collection[int], more: int) -> None:
    """Let joins have so many arcs more; those that need all of their arcs need these, too."""
    joins = Join.objects.filter(node__in=node_ids)
    wider = F("arc_count") + more
    joins.filter(needed_count__lt=F("arc_count")).update(arc_count=wider)
    joins.filter(needed_count=F("arc_count")).update(needed_count=wider, arc_count=wider)


def _mark_arcs(children: Collection[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(MARK_ARCS, {"joined": whole_numbers(children)})


def _join_below(children: Collection[int]) -> None:
    """Give joins to these nodes and to all below them: conditions above them are new."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_WITH_DESCENDANTS, [list(children)])
        below = {row[0] for row in cursor.fetchall()}
        below.difference_update(
            Join.objects.filter(node__in=below).values_list("node_id", flat=True)
        )
        numbers = whole_numbers(below)
        cursor.execute(MARK_ARCS, {"joined": numbers})
        cursor.execute(STORE_JOINS, {"joined": numbers, "nodes": "{}", "needed": []})
    recount(below)


def _extend_dag(dag: Dag, fragment: Fragment) -> None:
    """Limits and tolerances of categories that are new, and needs of nodes, in the DAG's row."""
    spec = fragment.spec
    dag.category_limits = {**spec.categories, **dag.category_limits}
    new = {name: {"given": each.given, "most": 0} for name, each in spec.tolerances.items()}
    dag.tolerances = {**new, **dag.tolerances}
    if dag.parent_node_id is None:
        dag.node_needs, dag.need_nodes = with_more_needs(
            dag.node_needs, dag.need_nodes, fragment.checked.nodes_by_needs
        )
    dag.save(update_fields=["category_limits", "tolerances", "node_needs", "need_nodes"])
