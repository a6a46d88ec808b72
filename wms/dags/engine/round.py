"""Round of the engine with one DAG: its locked row, options, counters, and moves of its nodes.

Also rounds of several DAGs at once, the outcome of a node (`NodeOutcome`), the options of a DAG's
run, moves of nodes of several DAGs outside of a round, and nodes read by their ids.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import connection

from wms.core.actors import Actor
from wms.dags.engine import sql, transitions
from wms.dags.engine.settling.decisions import Decision
from wms.dags.language.spec import RunOptions
from wms.dags.models import Dag, Node
from wms.dags.states import NodeKind

ENGINE = Actor.system("dag-engine")
COUNTERS = (
    "ready_count", "submitted_count", "done_count", "failed_count", "futile_count", "skipped_count",
)  # fmt: skip


def options_of(dag: Dag) -> RunOptions:
    """Options of the run: those that were set for it, and defaults."""
    return RunOptions(**dag.options)


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """Decision about a node with its reason; `has_jobs`: something of it was submitted before."""

    node: Node
    decision: Decision
    reason: str = ""
    cause: str = ""
    has_jobs: bool = True


@dataclass
class Round:
    """A DAG whose row the caller has locked, and its changes: `with Round(...) as round_`.

    Nodes are moved through it, so that the DAG's counters follow them: in memory at once, in its
    row when the round is left. `aborted_by` is the outcome that aborts the DAG, once there is one;
    `checks_auxiliary`: FINAL, SERVICE or PROVISIONER nodes may be ready to be submitted.
    """

    dag: Dag
    now: datetime
    actor: Actor = ENGINE
    number: int = field(init=False)
    aborted_by: NodeOutcome | None = field(default=None, init=False)
    checks_auxiliary: bool = field(default=False, init=False)
    #: After this time, by the monotonic clock, no further fragment is read; 0 for no limit.
    reads_until_s: float = 0.0
    _steps: Counter[str] = field(default_factory=Counter, init=False)
    _is_new: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.dag.round_number += 1
        self.number = self.dag.round_number

    def __enter__(self) -> Round:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            _write([self])

    @cached_property
    def options(self) -> RunOptions:
        """The options of the run."""
        return options_of(self.dag)

    @property
    def is_ending(self) -> bool:
        """Whether only the FINAL node runs any more."""
        return self.dag.is_ending

    def front_rank(self) -> int:
        """Rank before all nodes that are ready."""
        return -self.number

    def move(self, event: str, node_ids: Collection[int], **options: Any) -> list[int]:
        """Move nodes by an event, see `transitions.move`; returns those that moved."""
        moved = transitions.move(event, node_ids, dag_id=self.dag.pk, actor=self.actor, **options)
        self.count(moved.by_dag)
        return moved.ids

    def release(
        self, parents: Collection[int], *, rank: int, only_weak: bool = False
    ) -> Sequence[int]:
        """Count the ends of these parents for their children; return special nodes now ready.

        See `transitions.count_down`.
        """
        released = transitions.count_down(
            parents, ranks={self.dag.pk: rank}, actor=self.actor, only_weak=only_weak
        )
        self.count(released.by_dag)
        return released.special.get(self.dag.pk, [])

    def give_up_below(self, failed: Collection[int]) -> list[int]:
        """Make the descendants futile that cannot run because these nodes failed for good.

        Returns them. Nodes with joins are not among them, see `wms.dags.joins.deciding`.
        """
        moved = transitions.give_up_below(failed, dag_id=self.dag.pk, actor=self.actor)
        self.count(moved.by_dag)
        return moved.ids

    def count(self, by_dag: Mapping[int, Counter[str]]) -> None:
        """Let the DAG's counters follow moves of its nodes, told by DAG."""
        counts = by_dag.get(self.dag.pk)
        if counts is None:
            return
        _add_counts(self.dag, counts)
        self._steps.update(counts)
        if counts[transitions.AUXILIARY_READY]:
            self.checks_auxiliary = True

    def auxiliary_nodes(self) -> dict[str, list[Node]]:
        """Nodes of the kinds FINAL, SERVICE and PROVISIONER, by kind."""
        kinds = (NodeKind.FINAL, NodeKind.SERVICE, NodeKind.PROVISIONER)
        found: dict[str, list[Node]] = {}
        nodes = Node.objects.filter(dag=self.dag, kind__in=kinds).select_related("work")
        for node in nodes.order_by("ordinal"):
            found.setdefault(node.kind, []).append(node)
        return found

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Inside, others change the DAG's row: it is written before, and read again after."""
        _write([self])
        yield
        self.dag.refresh_from_db()

    def take_steps(self) -> dict[str, Any] | None:
        """What the DAG's row is to be changed by; None for nothing. To be written by the caller."""
        steps: dict[str, Any] = {name: self._steps[name] for name in COUNTERS}
        if not self._is_new and not self._steps:
            return None
        if any(name.startswith(transitions.CATEGORY) for name in self._steps):
            steps["category_counts"] = self.dag.category_counts
        self._steps.clear()
        self._is_new = False
        return {"id": self.dag.pk, "round_number": self.number, **steps}


@contextmanager
def rounds_of(dags: Iterable[Dag], now: datetime) -> Iterator[list[Round]]:
    """Rounds of several DAGs, locked by the caller, whose rows are written together."""
    rounds = [Round(dag, now) for dag in dags]
    yield rounds
    _write(rounds)


def _write(rounds: Iterable[Round]) -> None:
    """Let the rows of the DAGs follow what their rounds have counted. One statement."""
    rows = [steps for each in rounds if (steps := each.take_steps()) is not None]
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(sql.add_counts(COUNTERS), {"steps": json.dumps(rows)})


def move_in_each(
    dags: Sequence[Dag], event: str, node_ids: Collection[int], *, actor: Actor, **options: Any
) -> list[int]:
    """Move nodes of several DAGs, locked and in no round, by one event; their counters follow.

    Returns the nodes that moved. Two statements, however many DAGs they are.
    """
    moved = transitions.move(
        event, node_ids, dag_id=[dag.pk for dag in dags], actor=actor, **options
    )
    changed = [dag for dag in dags if dag.pk in moved.by_dag]
    for dag in changed:
        _add_counts(dag, moved.by_dag[dag.pk])
    Dag.objects.bulk_update(changed, [*COUNTERS, "category_counts"], batch_size=500)
    return moved.ids


def _add_counts(dag: Dag, counts: Mapping[str, int]) -> None:
    for name, step in counts.items():
        if name.startswith(transitions.CATEGORY):
            category = name.removeprefix(transitions.CATEGORY)
            dag.category_counts[category] = dag.category_counts.get(category, 0) + step
        elif name != transitions.AUXILIARY_READY:
            setattr(dag, name, getattr(dag, name) + step)


def nodes_by_id(node_ids: Iterable[int]) -> dict[int, Node]:
    """These nodes with their work, by id."""
    return Node.objects.select_related("work").in_bulk(list(node_ids))
