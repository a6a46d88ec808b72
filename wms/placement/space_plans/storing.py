"""Storing of plans, and the verdict on an allocation with those that are stored.

An allocation is judged under a lock of its own, so that two at different storages are not both
granted where one of them would leave the other's DAG without an end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Sum

from wms.core.database.locks import wait_for_locks
from wms.jobs.models import Workspace
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.space_plans.models import SpacePlan
from wms.placement.space_plans.ordering import Step, ordered
from wms.placement.space_plans.safety import Claim, Plan, Wish, fits, hindered
from wms.placement.storages.models import Storage

_JUDGING: Final = "placement-space"
#: Longer plans are not made: of each allocation all plans are read.
MOST_STEPS: Final = 500
#: Tells which of some nodes of DAGs have ended.
EndedFinder = Callable[[Collection[int]], set[int]]
_finders: list[EndedFinder] = []


@dataclass(frozen=True, slots=True)
class SpaceStep:
    """A node's allocation or, with no bytes, its release; `after` others, by their places."""

    node: int
    name: str
    storage_id: int
    size_bytes: int
    after: frozenset[int]


def register_ended(finder: EndedFinder) -> None:
    """Have this function, of the DAGs that are above, tell which nodes have ended."""
    _finders[:] = [finder]


def store_plan(
    dag: int, workspace: Workspace, steps: Sequence[SpaceStep], *, mark: str
) -> SpacePlan:
    """Store the plan of a DAG, in place of the one there is.

    It is without claims where no order of the steps fits into the storages: such a DAG takes what
    it gets.
    """
    claims = _claims_of(steps) if len(steps) <= MOST_STEPS else []
    values = {"workspace": workspace, "mark": mark, "claims": claims}
    return SpacePlan.objects.update_or_create(dag=dag, defaults=values)[0]


def has_plan(dag: int, mark: str) -> bool:
    """Whether a plan of the DAG was made for these nodes and this site."""
    return SpacePlan.objects.filter(dag=dag, mark=mark).exists()


def forget_plans(dags: Collection[int]) -> None:
    """Forget the plans of DAGs that have ended."""
    SpacePlan.objects.filter(dag__in=dags).delete()


def _claims_of(steps: Sequence[SpaceStep]) -> list[list[int | str | None]]:
    """Claims in an order of the steps that fits; none without one."""
    taken = {step.name: step for step in steps if step.size_bytes}
    planned = [
        Step(
            step.storage_id,
            step.size_bytes if step.size_bytes else -taken[step.name].size_bytes,
            step.after,
        )
        for step in steps
    ]
    storages = Storage.objects.filter(pk__in={step.storage_id for step in steps})
    order = ordered(planned, {each.pk: each.space_bytes or 0 for each in storages})
    if order is None:
        return []
    places = {n: place for place, n in enumerate(order)}
    gives = {step.name: places[n] for n, step in enumerate(steps) if not step.size_bytes}
    return [
        [step.name, step.storage_id, step.size_bytes, places[n], gives.get(step.name), step.node]
        for n, step in enumerate(steps)
        if step.size_bytes
    ]


def lock_space() -> None:
    """Let no other allocation be judged before the caller's transaction ends."""
    wait_for_locks([_JUDGING])


def others_in_need(
    request: PlacementRequest, storage: Storage, size_bytes: int, live: Iterable[tuple[int, int]]
) -> bool:
    """Whether DAGs could not end any more if a request were granted its space now.

    `live` are the bytes that are taken of storages, by their ids.
    """
    plans = _plans()
    if not plans:
        return False
    taken = defaultdict(int, live)
    wanted = {claim.storage for plan in plans for claim in plan.claims} | {storage.pk}
    space = dict(Storage.objects.filter(pk__in=wanted).values_list("pk", "space_bytes"))
    # A plan that does not fit even into an empty storage, which has become smaller, binds nobody.
    can = [plan for plan in plans if fits(_begun_anew(plan), {k: v or 0 for k, v in space.items()})]
    free = {pk: (offered or 0) - taken[pk] for pk, offered in space.items()}
    dag = request.workspace_id if request.topic else None
    wish = Wish(storage.pk, size_bytes, dag, request.allocation_name)
    return bool(hindered(can, free, wish))


def _begun_anew(plan: Plan) -> Plan:
    claims = (Claim(c.name, c.storage, c.size_bytes, c.takes_at, c.gives_at) for c in plan.claims)
    return Plan(plan.dag, tuple(claims))


def taken_of_storages(now: datetime) -> list[tuple[int, int]]:
    """Bytes that live allocations take of storages, by their ids."""
    live = PlacementAllocation.objects.filter(
        released_at=None, expires_at__gt=now, storage__isnull=False
    ).order_by()
    rows = live.values_list("storage_id").annotate(all=Sum("size_bytes"))
    return [(pk, int(taken)) for pk, taken in rows if pk is not None]


def _plans() -> list[Plan]:
    """Plans of DAGs that have not ended, as far as they are not over. Three queries.

    What a node was to take that has ended without it, because it failed or was done before, is not
    going to be taken. Those of one workspace are one: an inner DAG, the later one, ends before the
    DAG around it.
    """
    rows = list(SpacePlan.objects.exclude(claims=[]).order_by("-dag"))
    made = PlacementAllocation.objects.filter(workspace__in={row.workspace_id for row in rows})
    states: dict[int, dict[str, bool]] = defaultdict(dict)
    for workspace_id, name, released_at in made.order_by("pk").values_list(
        "workspace_id", "name", "released_at"
    ):
        states[workspace_id or 0][name] = released_at is None
    never = _ended({
        node
        for row in rows
        for name, *_, node in row.claims
        if name not in states[row.workspace_id]
    })  # fmt: skip
    claims: dict[int, list[Claim]] = defaultdict(list)
    for row in rows:
        found = claims[row.workspace_id]
        found += _left(row, states[row.workspace_id], never, behind=_end_of(found))
    return [Plan(workspace_id, tuple(found)) for workspace_id, found in claims.items()]


def _ended(nodes: Collection[int]) -> set[int]:
    return set[int]().union(*(find(nodes) for find in _finders)) if nodes else set()


def _end_of(claims: Sequence[Claim]) -> int:
    """The first place behind those of claims."""
    return 1 + max((max(each.takes_at, each.gives_at or 0) for each in claims), default=-1)


def _left(
    row: SpacePlan, states: Mapping[str, bool], never: Collection[int], *, behind: int
) -> list[Claim]:
    """Claims that are not over, neither released nor at the ends of their leases, behind others."""
    return [
        Claim(
            name, storage, size_bytes, takes_at + behind,
            None if gives_at is None else gives_at + behind, is_held=name in states,
        )
        for name, storage, size_bytes, takes_at, gives_at, node in row.claims
        if states.get(name, node not in never)
    ]  # fmt: skip
