"""One round of the engine with one DAG: its locked row, the counters, and how nodes are moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import F

from wms.core.actors import Actor
from wms.dags import moves
from wms.dags.language.spec import RunOptions
from wms.dags.models import Dag, Node
from wms.dags.states import NodeKind, NodeState

ENGINE = Actor.system("dag-engine")


def options_of(dag: Dag) -> RunOptions:
    """How the run is driven: what was set for it, and defaults."""
    return RunOptions(**dag.options)


@dataclass
class Round:
    """A DAG whose row the caller has locked, and what changes of it until `close`.

    Nodes are moved through it, so that the DAG's counters follow them.
    """

    dag: Dag
    now: datetime
    actor: Actor = ENGINE
    counts: Counter[str] = field(default_factory=Counter)
    number: int = 0

    def __post_init__(self) -> None:
        self.dag.round_number += 1
        self.number = self.dag.round_number

    @cached_property
    def options(self) -> RunOptions:
        """The options of the run."""
        return options_of(self.dag)

    @property
    def is_aside(self) -> bool:
        """Whether only the FINAL node runs any more."""
        return self.dag.ending is not None

    def front_rank(self) -> int:
        """A place before everything that is ready."""
        return -self.number

    def move(self, event: str, node_ids: Collection[int], **options: Any) -> list[int]:
        """Move nodes by an event, see `moves.move`; returns those that moved."""
        moved = moves.move(event, node_ids, dag_id=self.dag.pk, actor=self.actor, **options)
        self.count(moved.counts)
        return moved.ids

    def send(self, event: str, node_ids: Collection[int], **options: Any) -> moves.Sent:
        """Begin to move nodes, see `moves.send`; `take` ends it."""
        return moves.send(event, node_ids, dag_id=self.dag.pk, actor=self.actor, **options)

    def take(self, sent: moves.Sent) -> None:
        """Wait for the end of a move that was sent."""
        self.count(sent.moved().counts)

    def count(self, counts: Counter[str]) -> None:
        """Let the DAG's counters change by so much."""
        add_counts(self.dag, counts)
        self.counts.update(counts)

    def beside(self) -> dict[str, list[Node]]:
        """The nodes that stand beside the others, by kind: FINAL, SERVICE, PROVISIONER."""
        kinds = (NodeKind.FINAL, NodeKind.SERVICE, NodeKind.PROVISIONER)
        found: dict[str, list[Node]] = {}
        nodes = Node.objects.filter(dag=self.dag, kind__in=kinds).select_related("work")
        for node in nodes.order_by("ordinal"):
            found.setdefault(node.kind, []).append(node)
        return found

    def close(self) -> None:
        """Write the counters and the number of the round."""
        categories = {name for name in self.counts if name.startswith(moves.CATEGORY)}
        steps: dict[str, Any] = {
            name: F(name) + step
            for name, step in self.counts.items()
            if step and name not in categories
        }
        if categories:
            steps["category_counts"] = self.dag.category_counts
        Dag.objects.filter(pk=self.dag.pk).update(round_number=self.number, **steps)
        self.counts.clear()


def add_counts(dag: Dag, counts: Mapping[str, int]) -> None:
    """Let the counters of a DAG's row in memory change by so much."""
    for name, step in counts.items():
        if name.startswith(moves.CATEGORY):
            category = name.removeprefix(moves.CATEGORY)
            dag.category_counts[category] = dag.category_counts.get(category, 0) + step
        else:
            setattr(dag, name, getattr(dag, name) + step)


def nodes_by_id(node_ids: Iterable[int]) -> dict[int, Node]:
    """These nodes with their work, by id."""
    return Node.objects.select_related("work").in_bulk(list(node_ids))


def alive(nodes: Iterable[Node], *states: NodeState) -> list[Node]:
    """Those nodes that are in one of these states."""
    wanted = {state.value for state in states}
    return [node for node in nodes if node.state in wanted]
