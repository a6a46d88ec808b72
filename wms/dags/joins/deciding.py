"""Decision on nodes with joins when their parents end: ready, skipped, or futile.

A node is ready once enough of its arcs hold, and nothing that comes later changes that. It is
skipped as soon as conditions, or nodes that were skipped, have ruled out too many of its arcs,
whatever the others do. If too few hold after all parents have ended, it is futile: without the
failures above it, it would have run. So what becomes of a node does not depend on the order in
which its parents end. The caller of everything here holds the lock of the DAG's row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection

from wms.core.database.statements import whole_numbers
from wms.dags.engine.round import Round
from wms.dags.joins.conditions import evaluate_conditions
from wms.dags.joins.sql import COUNT_ENDS, FIND_ENDED_WITH, FIND_UNMET, FOLLOW_JOINS, RECOUNT_ARCS
from wms.dags.models import Condition, Node
from wms.dags.states import NodeCause, NodeState


class JoinCounts(NamedTuple):
    """Counts of the arcs of a node, and its state."""

    node_id: int
    state: str
    is_special: bool
    needed: int
    arcs: int
    held: int
    ruled_out: int
    lost: int

    @property
    def next_state(self) -> NodeState | None:
        """State that a waiting node has to take; None while that is open."""
        if self.held >= self.needed:
            return NodeState.READY
        if self.arcs - self.ruled_out < self.needed:
            return NodeState.SKIPPED
        if self.held + self.ruled_out + self.lost == self.arcs:
            return NodeState.FUTILE
        return None


@dataclass(slots=True)
class _Decided:
    """Nodes by what becomes of them; the skipped ones by their counts, which are the reason."""

    ready: list[int] = field(default_factory=list)
    special: list[int] = field(default_factory=list)
    skipped: dict[tuple[int, int, int], list[int]] = field(
        default_factory=lambda: defaultdict(list)
    )
    skipped_below: list[int] = field(default_factory=list)
    futile: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)

    def add(self, rows: Iterable[JoinCounts]) -> dict[int, str]:
        """Take in counts that have changed; return the nodes that end now, with their states."""
        ended: dict[int, str] = {}
        for row in rows:
            following = row.next_state
            if following is None or row.state != NodeState.WAITING or row.node_id in self.known:
                continue
            self.known.add(row.node_id)
            if following is NodeState.READY:
                self.ready.append(row.node_id)
                self.special += [row.node_id] if row.is_special else []
                continue
            ended[row.node_id] = following.value
            if following is NodeState.SKIPPED:
                self.skipped[row.needed, row.arcs, row.ruled_out].append(row.node_id)
            else:
                self.futile.append(row.node_id)
        return ended

    def add_below(self, below: Mapping[int, str]) -> dict[int, str]:
        """Take in nodes that end with others; return those not known yet, with their states."""
        found = {pk: state for pk, state in below.items() if pk not in self.known}
        self.known.update(found)
        for pk, state in found.items():
            (self.skipped_below if state == NodeState.SKIPPED else self.futile).append(pk)
        return found


def follow_ends(
    round_: Round,
    *,
    rank: int,
    done: Collection[int] = (),
    failed: Collection[int] = (),
    futile: Collection[int] = (),
    begins: bool = True,
) -> list[int]:
    """Count the ends of these nodes in the joins of their children, and decide on those.

    Returns special nodes that are ready now. Without `begins`, in a DAG that ends, none is made
    ready.
    """
    evaluate_conditions([*done, *failed])
    ended = {
        **dict.fromkeys(done, NodeState.DONE.value),
        **dict.fromkeys(failed, NodeState.FAILED.value),
        **dict.fromkeys(futile, NodeState.FUTILE.value),
    }
    decided = _decide(_count(ended))
    if begins:
        round_.move("make ready", decided.ready, ready_rank=rank, unfinished_parents=0)
    else:
        Node.objects.filter(pk__in=decided.ready).update(unfinished_parents=0)
    _end(round_, decided)
    return decided.special if begins else []


def decide_unmet(round_: Round) -> None:
    """Skip the nodes, or make them futile, of whose arcs too few can hold as they are counted."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_UNMET, {"dag": round_.dag.pk})
        rows = [JoinCounts(*row) for row in cursor.fetchall()]
    _end(round_, _decide(rows))


def reconsider(round_: Round, node_ids: Collection[int]) -> None:
    """Count the arcs of these nodes anew, after nodes above them were changed, and decide."""
    recount(node_ids)
    decide_unmet(round_)


def recount(node_ids: Collection[int]) -> None:
    """Count the arcs of these nodes as their parents are now; those whose join is met may begin."""
    with connection.cursor() as cursor:
        for statement in (RECOUNT_ARCS, FOLLOW_JOINS):
            cursor.execute(statement, {"nodes": whole_numbers(node_ids)})


def _count(ended: Mapping[int, str]) -> Sequence[JoinCounts]:
    if not ended:
        return []
    with connection.cursor() as cursor:
        cursor.execute(COUNT_ENDS, _parameters(ended))
        return [JoinCounts(*row) for row in cursor.fetchall()]


def _decide(rows: Sequence[JoinCounts]) -> _Decided:
    """Decide on these nodes, and on those below the ones that end so."""
    decided = _Decided()
    while rows:
        ended = decided.add(rows)
        rows = _count(ended | decided.add_below(_ended_with(ended)))
    return decided


def _ended_with(ended: Mapping[int, str]) -> dict[int, str]:
    """Nodes that certainly end with these, however deep: a long chain takes one statement."""
    if not ended:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(FIND_ENDED_WITH, _parameters(ended))
        return dict(cursor.fetchall())


def _parameters(ended: Mapping[int, str]) -> dict[str, Any]:
    return {"parents": whole_numbers(ended), "states": list(ended.values())}


def _end(round_: Round, decided: _Decided) -> None:
    for counts, node_ids in decided.skipped.items():
        told = _told_by_conditions(node_ids)
        alike: dict[str, list[int]] = defaultdict(list)
        for pk in node_ids:
            alike[told.get(pk, "")].append(pk)
        for text, ids in alike.items():
            full = f"{_in_words(*counts)}{text}"
            round_.move("rule out", ids, reason=full, cause=NodeCause.CONDITION)
    round_.move(
        "rule out",
        decided.skipped_below,
        reason="a node before it was skipped, and all of its arcs have to hold",
        cause=NodeCause.CONDITION,
    )
    round_.move(
        "give up",
        decided.futile,
        reason="too many of its arcs come from nodes that failed or cannot run",
        cause=NodeCause.ANCESTOR,
    )


def _in_words(needed: int, arcs: int, ruled_out: int) -> str:
    if arcs == 1:
        return "its only arc does not hold"
    return f"{ruled_out} of its {arcs} arcs do not hold, and {needed} have to"


def _told_by_conditions(node_ids: Collection[int]) -> dict[int, str]:
    """What the conditions that do not hold tell, by child."""
    conditions = Condition.objects.filter(child__in=list(node_ids), holds=False)
    found: dict[int, list[str]] = defaultdict(list)
    for child, parent, reason in conditions.order_by("pk").values_list(
        "child_id", "parent__name", "reason"
    ):
        found[child].append(f"after {parent}, {reason}")
    return {child: f": {'; '.join(texts[:3])}"[:1000] for child, texts in found.items()}
