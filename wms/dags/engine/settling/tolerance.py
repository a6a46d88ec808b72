"""Failing of nodes with the tolerance of their categories, and judgement of a DAG's failures.

A tolerated failure counts as an end for the children. How many a category has used up is counted in
the DAG's row, beside its submitted nodes; which ones they are stands in the nodes' work and in
their events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from wms.dags.engine import transitions
from wms.dags.engine.node_work import write_work
from wms.dags.engine.round import Round
from wms.dags.joins.selectors import unhandled_failures
from wms.dags.language.commands.success import judge
from wms.dags.models import Dag, Node, NodeWork
from wms.dags.states import COUNTED_KINDS, NODE_TRANSITIONS, NodeState

#: Begins the names under which tolerated nodes are counted by category; no category has a blank.
TOLERATED = " tolerated "
#: Fact of the event of a failure that is tolerated.
FACT = "tolerated"


@dataclass(frozen=True, slots=True)
class Failed:
    """Nodes that have failed for good: those that are `lost`, and those that are tolerated."""

    lost: list[int] = field(default_factory=list)
    tolerated: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a DAG with failed nodes is a success, and the rule that decided, in words."""

    is_success: bool
    words: str = ""


def fail_nodes(
    round_: Round,
    node_ids: Collection[int],
    *,
    reason: str,
    cause: str,
    event: str = "fail",
    facts: Mapping[str, Any] | None = None,
) -> Failed:
    """Let nodes fail; as many as their categories still tolerate are tolerated, in file order.

    The `facts` go into their events.
    """
    given = facts or {}
    tolerated: list[int] = []
    for category, ids in _tolerable(round_.dag, node_ids, event).items():
        moved = round_.move(event, ids, reason=reason, cause=cause, facts={**given, FACT: True})
        _count(round_, category, len(moved))
        tolerated += moved
    write_work([NodeWork(node_id=pk, is_tolerated=True) for pk in tolerated], "is_tolerated")
    others = sorted(set(node_ids).difference(tolerated))
    return Failed(round_.move(event, others, reason=reason, cause=cause, facts=facts), tolerated)


def _tolerable(dag: Dag, node_ids: Collection[int], event: str) -> dict[str, list[int]]:
    """Those of the nodes whose failure is tolerated, by category."""
    if not dag.tolerances or not node_ids:
        return {}
    found: dict[str, list[int]] = {}
    rows = Node.objects.filter(
        pk__in=list(node_ids),
        category__in=list(dag.tolerances),
        kind__in=COUNTED_KINDS,
        state__in=NODE_TRANSITIONS[event].sources,
    )
    for pk, category in rows.order_by("ordinal").values_list("pk", "category"):
        found.setdefault(category, []).append(pk)
    return {category: ids[: room_of(dag, category)] for category, ids in found.items()}


def room_of(dag: Dag, category: str) -> int:
    """Number of further failures that the category tolerates."""
    most: int = dag.tolerances[category]["most"]
    return max(most - int(dag.category_counts.get(TOLERATED + category, 0)), 0)


def tolerated_by_category(dag: Dag) -> dict[str, int]:
    """Tolerated nodes of each category that has some."""
    return {
        name.removeprefix(TOLERATED): count
        for name, count in dag.category_counts.items()
        if name.startswith(TOLERATED) and count
    }


def tolerated_count(dag: Dag) -> int:
    """Number of failed nodes that are tolerated."""
    return sum(tolerated_by_category(dag).values())


def forget_tolerated(round_: Round, node_ids: Collection[int]) -> None:
    """Count anew after these nodes have left their state; those that are done are tolerated no
    more.
    """
    dag = round_.dag
    if not dag.tolerances:
        return
    left = NodeWork.objects.filter(node__in=list(node_ids), is_tolerated=True)
    gone = left.exclude(node__state=NodeState.FAILED).values_list("node_id", flat=True)
    write_work([NodeWork(node_id=pk, is_tolerated=False) for pk in gone], "is_tolerated")
    counted = tolerated_by_category(dag)
    stored = _stored_counts(dag)
    for category in {*counted, *stored}:
        _count(round_, category, stored.get(category, 0) - counted.get(category, 0))


def _stored_counts(dag: Dag) -> Mapping[str, int]:
    rows = Node.objects.filter(dag=dag, state=NodeState.FAILED, work__is_tolerated=True)
    return dict(rows.order_by().values_list("category").annotate(Count("pk")))


def _count(round_: Round, category: str, number: int) -> None:
    if number:
        name = f"{transitions.CATEGORY}{TOLERATED}{category}"
        round_.count({round_.dag.pk: Counter({name: number})})


def counts_of(dag: Dag) -> dict[str, int]:
    """Counts of the DAG's nodes as SUCCESS WHEN knows them."""
    return {
        "Done": dag.done_count,
        "Failed": dag.failed_count,
        "Tolerated": tolerated_count(dag),
        "Futile": dag.futile_count,
        "Skipped": dag.skipped_count,
        "Total": dag.node_count,
    }


def judge_failures(dag: Dag) -> Judgement:
    """Judgement of a DAG all of whose nodes have ended, and some of them badly.

    SUCCESS WHEN decides if the DAG has it; else it is a success if all that failed is tolerated,
    or handled by a condition.
    """
    counts = counts_of(dag)
    if dag.success_rule:
        verdict = judge(dag.success_rule, counts)
        value = verdict.fault or f"it is {'true' if verdict.is_success else 'false'}"
        return Judgement(verdict.is_success, f"SUCCESS WHEN {dag.success_rule}: {value}")
    if not dag.tolerances:
        return Judgement(is_success=False)
    lost = unhandled_failures(dag).exclude(work__is_tolerated=True)
    if not counts["Futile"] and not lost.exists():
        return Judgement(is_success=True, words="TOLERANCE allows that")
    return Judgement(is_success=False, words=f"TOLERANCE allows {counts['Tolerated']} of them")
