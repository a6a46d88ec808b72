"""Allocations of space: made within what a storage offers, filled by transfers, released, expired.

What is taken of an allocation are the files that were placed into it, and what transfers hold that
run. The row of the allocation is locked while it is counted, that of its storage while one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from wms.core.errors import Conflict, NotFound
from wms.core.models import User
from wms.placement.models import PlacementAllocation, PlacementAttempt, PlacementRequest
from wms.placement.space_plans.storing import lock_space, others_in_need, taken_of_storages
from wms.placement.states import TERMINAL, WAITING, RequestKind, RequestState
from wms.placement.storages.endpoints import hosts_of
from wms.placement.storages.models import Storage

#: So many that wait for space are tried at once when some is given back.
_WOKEN: Final = 1000


class NoRoomYet(Conflict):
    """There is no room for an allocation now; there will be when others give space back."""


def live_allocations(now: datetime) -> QuerySet[PlacementAllocation]:
    """Allocations that are neither released nor over."""
    return PlacementAllocation.objects.filter(released_at=None, expires_at__gt=now)


def _in_reach(request: PlacementRequest) -> Q:
    """Condition for what a request may name: of the workspace of its DAG, or its owner's own.

    Those of the owner are of no frontend: of a limited one, the workspace's alone.
    """
    own = Q(workspace=None, owner_id=request.owner_id)
    if not request.topic:
        return own
    of_dag = Q(workspace_id=request.workspace_id)
    return of_dag if request.workspace.limited_to is not None else own | of_dag


def find_allocation(
    request: PlacementRequest, now: datetime, *, is_at: Callable[[PlacementAllocation], bool]
) -> PlacementAllocation:
    """The allocation that a request names, locked: one that is at its storage. Raises NotFound."""
    named = live_allocations(now).filter(_in_reach(request), name=request.allocation_name)
    # That of the DAG, if both have one of this name.
    nearest = named.order_by(F("workspace").asc(nulls_last=True))
    found = nearest.select_related("storage").select_for_update(of=("self",)).first()
    if found is None:
        raise NotFound(f"there is no allocation {request.allocation_name}, or it is over")
    if not is_at(found):
        where = request.host or request.destination_storage or "elsewhere"
        raise NotFound(
            f"allocation {found.name} is of {found.storage or found.host}, not of {where}"
        )
    return found


def _is_of(allocation: PlacementAllocation, storage: Storage | None) -> bool:
    """Whether it was made at the storage, or, before there were storages, at one of its hosts."""
    if storage is None:
        return False
    if allocation.storage_id is None:
        return allocation.host in hosts_of(storage.endpoints)
    return allocation.storage_id == storage.pk


def _is_named(allocation: PlacementAllocation, word: str) -> bool:
    """Whether a `dest_host` is the storage of an allocation, or a host of it."""
    if allocation.storage is None:
        return allocation.host == word
    return word in {allocation.storage.name.lower(), *hosts_of(allocation.storage.endpoints)}


def is_promised(request: PlacementRequest) -> bool:
    """Whether a request will make the allocation that this one names, or has in the same DAG."""
    making = PlacementRequest.objects.filter(
        kind=RequestKind.ALLOCATE, allocation_name=request.allocation_name, owner=request.owner_id
    )
    own = Q(topic="") & ~Q(state__in=TERMINAL)
    if not request.topic:
        return making.filter(own).exists()
    failed = [RequestState.FAILED, RequestState.REMOVED]
    of_dag = Q(workspace_id=request.workspace_id) & ~Q(topic="") & ~Q(state__in=failed)
    is_limited = request.workspace.limited_to is not None
    return making.filter(of_dag if is_limited else own | of_dag).exists()


def has_allocation(request: PlacementRequest, now: datetime) -> bool:
    """Whether the request names a live allocation that it may use."""
    named = live_allocations(now).filter(_in_reach(request), name=request.allocation_name)
    return named.exists()


def own_allocations(owner: User, names: Collection[str], now: datetime) -> set[str]:
    """Names of these that allocations of the owner have which are of no DAG, or will have.

    They are of no frontend: who is limited to one has none.
    """
    if owner.limited_to is not None:
        return set()
    live = live_allocations(now).filter(workspace=None, owner=owner, name__in=names)
    found = set(live.values_list("name", flat=True))
    making = PlacementRequest.objects.filter(
        kind=RequestKind.ALLOCATE, allocation_name__in=names, owner=owner, topic=""
    ).exclude(state__in=TERMINAL)
    return found | set(making.values_list("allocation_name", flat=True))


@transaction.atomic
def require_room(request: PlacementRequest, storage: Storage, *, now: datetime) -> None:
    """Raise what `allocate` would raise now, and make nothing."""
    lock_space()
    _require_room(request, storage, now)


@transaction.atomic
def allocate(request: PlacementRequest, storage: Storage, *, now: datetime) -> PlacementAllocation:
    """Take space of a storage, if all DAGs can end that could before.

    The same name again is a Conflict while the first one lives, and so is more space than there
    is. Raises NoRoomYet while others have it, or need it to end.
    """
    lock_space()
    # So that requests that name it can go on meanwhile.
    storage = Storage.objects.select_for_update(no_key=True).get(pk=storage.pk)
    _named_by_it(request).filter(released_at=None, expires_at__lte=now).update(
        released_at=F("expires_at")
    )
    _require_room(request, storage, now)
    return PlacementAllocation.objects.create(
        owner_id=request.owner_id,
        workspace_id=request.workspace_id if request.topic else None,
        name=request.allocation_name,
        host=request.host,
        storage=storage,
        size_bytes=request.expected_bytes or 0,
        expires_at=now + timedelta(seconds=request.duration_s or 0),
    )


def _named_by_it(request: PlacementRequest) -> QuerySet[PlacementAllocation]:
    """Allocations of the name that a request gives to its own, of its DAG or its owner."""
    mine = Q(workspace_id=request.workspace_id) if request.topic else Q(
        workspace=None, owner_id=request.owner_id
    )  # fmt: skip
    return PlacementAllocation.objects.filter(mine, name=request.allocation_name)


def _require_room(request: PlacementRequest, storage: Storage, now: datetime) -> None:
    live = live_allocations(now)
    if _named_by_it(request).filter(released_at=None, expires_at__gt=now).exists():
        raise Conflict(f"there is an allocation {request.allocation_name} already")
    size, offered = request.expected_bytes or 0, storage.space_bytes or 0
    at_hosts = Q(storage=None, host__in=hosts_of(storage.endpoints))
    taken = live.filter(Q(storage=storage) | at_hosts).aggregate(all=Sum("size_bytes"))["all"] or 0
    left = max(offered - taken, 0)
    if size > offered:
        raise Conflict(f"{storage.name} has {offered} bytes in all, {size} are asked for")
    if size > left:
        raise NoRoomYet(f"{storage.name} has {left} bytes left, {size} are asked for")
    taken_of_all = {**dict(taken_of_storages(now)), storage.pk: taken}
    if others_in_need(request, storage, size, taken_of_all.items()):
        raise NoRoomYet(
            f"{storage.name} has {left} bytes left, which are kept: a DAG would need them to end "
            f"that has space already, if {size} were taken now"
        )


@transaction.atomic
def named_by(request: PlacementRequest, *, now: datetime) -> PlacementAllocation:
    """The allocation that a request is to release. Raises NotFound."""
    return find_allocation(request, now, is_at=lambda each: _is_named(each, request.host))


@transaction.atomic
def release(request: PlacementRequest, *, now: datetime) -> None:
    """Give the allocation back that the request names; its files stay. Raises NotFound.

    The caller has those looked at again that wait for space.
    """
    found = find_allocation(request, now, is_at=lambda each: _is_named(each, request.host))
    PlacementAllocation.objects.filter(pk=found.pk).update(released_at=now)


def look_again(now: datetime) -> int:
    """Have allocations tried at once that wait for space; their number.

    Their requests are locked then, without waiting: no caller may wait for others behind it.
    """
    waiting = PlacementRequest.objects.filter(
        kind=RequestKind.ALLOCATE, state__in=WAITING, due_at__gt=now
    )
    # Those that somebody just changes are looked at when they are due.
    free = waiting.order_by("pk").select_for_update(skip_locked=True, of=("self",))
    ids = list(free.values_list("pk", flat=True)[:_WOKEN])
    return PlacementRequest.objects.filter(pk__in=ids).update(due_at=now)


def taken_bytes(allocation_id: int) -> int:
    """Bytes of an allocation that files have, or running transfers hold."""
    attempts = PlacementAttempt.objects.filter(allocation_id=allocation_id)
    counted = attempts.filter(Q(exit_code=None) | Q(exit_code=0))
    sums = counted.aggregate(all=Sum(Coalesce("size_bytes", "held_bytes", Value(0))))
    return int(sums["all"] or 0)


@transaction.atomic
def hold(request: PlacementRequest, lease: str, size_bytes: int | None, *, now: datetime) -> int:
    """Let an attempt hold space for its file, all that is left where its size is not known.

    Returns the bytes that it may write. Raises NotFound, and Conflict where the file has no room.
    """
    storage = request.destination_storage
    found = find_allocation(request, now, is_at=lambda each: _is_of(each, storage))
    left = found.size_bytes - taken_bytes(found.pk)
    held = left if size_bytes is None else size_bytes
    if held > left or left <= 0:
        asked = "the file" if size_bytes is None else f"{size_bytes} bytes"
        raise Conflict(
            f"allocation {found.name} has {max(left, 0)} bytes left, no room for {asked}"
        )
    PlacementAttempt.objects.filter(request=request, exit_code=None, lease=lease).update(
        allocation=found, held_bytes=held
    )
    return held


@transaction.atomic
def expire_allocations(now: datetime) -> int:
    """End allocations whose time is over; their number."""
    over = PlacementAllocation.objects.filter(released_at=None, expires_at__lte=now)
    count = over.update(released_at=F("expires_at"))
    if count:
        look_again(now)
    return count


@transaction.atomic
def release_of_workspaces(workspace_ids: Collection[int], *, now: datetime) -> int:
    """Release what the DAGs of these workspaces have allocated; their number."""
    live = PlacementAllocation.objects.filter(workspace__in=workspace_ids, released_at=None)
    count = live.update(released_at=now)
    if count:
        look_again(now)
    return count
