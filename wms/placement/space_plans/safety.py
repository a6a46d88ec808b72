"""Safety of an allocation: whether every DAG can still end that could before (banker's rule).

A DAG can end if all that it is still going to take, in the order of its plan, has room in what is
free and in what DAGs that can end before it give back. What a DAG has is back when it has ended: by
its releases, or when the leases are over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Claim:
    """Space that a DAG takes at a place of its plan, and gives back at another, or not at all."""

    name: str
    storage: int
    size_bytes: int
    takes_at: int
    gives_at: int | None
    #: It has been taken, and not given back.
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Space that a DAG with its inner DAGs has and is going to take, without what is over."""

    dag: int
    claims: tuple[Claim, ...]


def fits(plan: Plan, free: Mapping[int, int]) -> bool:
    """Whether all that a plan still takes has room, one after the other."""
    changes: list[tuple[int, int, int]] = []
    for claim in plan.claims:
        if not claim.is_held:
            changes.append((claim.takes_at, claim.storage, claim.size_bytes))
        if claim.gives_at is not None:
            changes.append((claim.gives_at, claim.storage, -claim.size_bytes))
    left = dict(free)
    for _, storage, taken in sorted(changes):
        left[storage] = left.get(storage, 0) - taken
        if taken > 0 and left[storage] < 0:
            return False
    return True


def that_can_end(plans: Iterable[Plan], free: Mapping[int, int]) -> set[int]:
    """The DAGs that can end, one after the other, whatever order they are looked at in."""
    left, room, found = list(plans), dict(free), set[int]()
    while True:
        waiting = []
        for plan in left:
            if not fits(plan, room):
                waiting.append(plan)
                continue
            found.add(plan.dag)
            for claim in plan.claims:
                if claim.is_held:
                    room[claim.storage] = room.get(claim.storage, 0) + claim.size_bytes
        if len(waiting) == len(left):
            return found
        left = waiting


@dataclass(frozen=True, slots=True)
class Wish:
    """Space that is to be taken: by a DAG for the claim of a name, or by whoever has no plan."""

    storage: int
    size_bytes: int
    dag: int | None = None
    name: str = ""


def hindered(plans: Collection[Plan], free: Mapping[int, int], wish: Wish) -> set[int]:
    """DAGs that could end, or are to take space, and cannot end once it is taken."""
    after = [_with_taken(plan, wish.name) if plan.dag == wish.dag else plan for plan in plans]
    left = {**free, wish.storage: free.get(wish.storage, 0) - wish.size_bytes}
    own = {plan.dag for plan in plans if plan.dag == wish.dag}
    return (that_can_end(plans, free) | own) - that_can_end(after, left)


def _with_taken(plan: Plan, name: str) -> Plan:
    claims = (replace(c, is_held=True) if c.name == name else c for c in plan.claims)
    return replace(plan, claims=tuple(claims))
