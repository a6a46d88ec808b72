"""Storage of a new DAG's joins and conditions, and of the outcomes that a rescue has kept.

A join is stored for each node that may be skipped: those with a JOIN, those after a node that has
conditions on its arcs, and all below them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db import connection

from wms.core.actors import Actor
from wms.core.database.statements import whole_numbers
from wms.dags.engine import transitions
from wms.dags.joins.conditions import ParentEnd, evaluate_conditions, verdict_of
from wms.dags.joins.deciding import recount
from wms.dags.joins.outcomes import FACT
from wms.dags.joins.sql import MARK_ARCS, STORE_JOINS
from wms.dags.language.spec import DagSpec
from wms.dags.models import Condition, Dag, Node
from wms.dags.states import NodeState

_BATCH = 5000


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """Positions of the nodes with joins, and of those with conditions on arcs from them."""

    joined: frozenset[int] = frozenset()
    parents: frozenset[int] = frozenset()


def plan_joins(spec: DagSpec) -> JoinPlan:
    """Joins of a DAG that has any conditions or JOIN lines; else an empty plan."""
    parents = frozenset(parent for parent, _ in spec.conditions)
    first = {at for at, rule in spec.joins.items() if rule.needed is not None}
    for parent in parents:
        first.update(_children(spec, parent))
    joined, left = set(first), list(first)
    while left:
        below = [at for at in _children(spec, left.pop()) if at not in joined]
        joined.update(below)
        left += below
    return JoinPlan(frozenset(joined), parents)


def store_joins(dag: Dag, spec: DagSpec, plan: JoinPlan, ids: Sequence[int]) -> None:
    """Store the joins and conditions of a DAG whose nodes and arcs are stored."""
    joined = [ids[at] for at in sorted(plan.joined)]
    needed = {ids[at]: rule.needed for at, rule in spec.joins.items() if rule.needed is not None}
    with connection.cursor() as cursor:
        cursor.execute(MARK_ARCS, {"joined": whole_numbers(joined)})
        cursor.execute(
            STORE_JOINS,
            {
                "joined": whole_numbers(joined),
                "nodes": whole_numbers(needed),
                "needed": list(needed.values()),
            },
        )
    Condition.objects.bulk_create(
        (
            Condition(parent_id=ids[parent], child_id=ids[child], expression=rule.text)
            for (parent, child), rule in spec.conditions.items()
        ),
        batch_size=_BATCH,
    )
    Dag.objects.filter(pk=dag.pk).update(has_joins=True)
    dag.has_joins = True


@dataclass(frozen=True)
class KeptOutcomes:
    """Outcomes that a rescue has kept, of nodes of a new DAG with conditions on arcs from them.

    `is_done` is by position, `outcomes` by name. A node that failed is not run again as long as a
    condition after it holds.
    """

    spec: DagSpec
    plan: JoinPlan
    ids: Sequence[int]
    is_done: Sequence[int]
    outcomes: Mapping[str, Mapping[str, Any]]

    def mark(self, dag: Dag, *, reason: str, actor: Actor) -> tuple[int, int]:
        """Mark these nodes, each with its outcome; returns how many are done, and failed."""
        counts = Counter[str]()
        for at, event in self._events():
            counts[event] += len(
                transitions.move(
                    event,
                    [self.ids[at]],
                    dag_id=dag.pk,
                    actor=actor,
                    reason=reason,
                    facts={FACT: dict(self._outcome(at))},
                ).ids
            )
        return counts["mark done"], counts["mark failed"]

    def count(self) -> None:
        """Count the arcs from marked nodes; what follows is decided when the DAG begins."""
        if not self.plan.joined:
            return
        parents = [self.ids[at] for at in self.plan.parents]
        ended = Node.objects.filter(pk__in=parents, state__in=(NodeState.DONE, NodeState.FAILED))
        evaluate_conditions(ended.values_list("pk", flat=True))
        recount([self.ids[at] for at in sorted(self.plan.joined)])

    def _events(self) -> Iterable[tuple[int, str]]:
        for at in sorted(self.plan.parents):
            outcome = self._outcome(at)
            if self.is_done[at] and outcome.get("State") == NodeState.DONE:
                yield at, "mark done"
            elif not self.is_done[at] and self._is_handled(at, outcome):
                yield at, "mark failed"

    @cached_property
    def _conditions(self) -> Mapping[int, Sequence[str]]:
        """Conditions by the position of the parent."""
        texts: dict[int, list[str]] = defaultdict(list)
        for (parent, _), rule in self.spec.conditions.items():
            texts[parent].append(rule.text)
        return texts

    @cached_property
    def _names(self) -> Sequence[str]:
        return list(self.spec.nodes)

    def _outcome(self, at: int) -> Mapping[str, Any]:
        return self.outcomes.get(self._names[at], {})

    def _is_handled(self, at: int, outcome: Mapping[str, Any]) -> bool:
        if outcome.get("State") != NodeState.FAILED:
            return False
        return any(verdict_of(text, ParentEnd(outcome)).holds for text in self._conditions[at])


def _children(spec: DagSpec, parent: int) -> Iterable[int]:
    arcs = spec.arcs
    start = bisect_left(arcs.parents, parent)
    children: array[int] = arcs.children
    while start < len(children) and arcs.parents[start] == parent:
        yield children[start]
        start += 1
