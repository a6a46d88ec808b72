"""Allocations of space: made within what a host offers, filled by transfers, released, expired.

What is taken of an allocation are the files that were placed into it, and what transfers hold that
run. The row of the allocation is locked while it is counted, that of all of a host by a lock of its
name.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from wms.core.database.locks import wait_for_locks
from wms.core.errors import Conflict, NotFound
from wms.placement.models import PlacementAllocation, PlacementAttempt, PlacementRequest
from wms.placement.states import TERMINAL, RequestKind, RequestState


def live_allocations(now: datetime) -> QuerySet[PlacementAllocation]:
    """Allocations that are neither released nor over."""
    return PlacementAllocation.objects.filter(released_at=None, expires_at__gt=now)


def _in_reach(request: PlacementRequest) -> Q:
    """Condition for what a request may name: of the workspace of its DAG, or its owner's own."""
    own = Q(workspace=None, owner_id=request.owner_id)
    return own | Q(workspace_id=request.workspace_id) if request.topic else own


def find_allocation(request: PlacementRequest, now: datetime, *, host: str) -> PlacementAllocation:
    """The allocation that a request names, locked. Raises NotFound."""
    named = live_allocations(now).filter(_in_reach(request), name=request.allocation_name)
    # That of the DAG, if both have one of this name.
    nearest = named.order_by(F("workspace").asc(nulls_last=True))
    found = nearest.select_for_update(of=("self",)).first()
    if found is None:
        raise NotFound(f"there is no allocation {request.allocation_name}, or it is over")
    if found.host != host:
        raise NotFound(f"allocation {found.name} is of {found.host}, not of {host}")
    return found


def is_promised(request: PlacementRequest) -> bool:
    """Whether a request will make the allocation that this one names, or has in the same DAG."""
    making = PlacementRequest.objects.filter(
        kind=RequestKind.ALLOCATE, allocation_name=request.allocation_name, owner=request.owner_id
    )
    own = Q(topic="") & ~Q(state__in=TERMINAL)
    if not request.topic:
        return making.filter(own).exists()
    of_dag = Q(workspace_id=request.workspace_id) & ~Q(topic="")
    failed = [RequestState.FAILED, RequestState.REMOVED]
    return making.filter(own | (of_dag & ~Q(state__in=failed))).exists()


def has_allocation(request: PlacementRequest, now: datetime) -> bool:
    """Whether the request names a live allocation that it may use."""
    named = live_allocations(now).filter(_in_reach(request), name=request.allocation_name)
    return named.exists()


@transaction.atomic
def allocate(
    request: PlacementRequest, *, offered: int | None, now: datetime
) -> PlacementAllocation:
    """Take space of the request's host, of which so many bytes are offered.

    The same name again is a Conflict while the first one lives, and so is a full host.
    """
    wait_for_locks([f"placement-space:{request.host}"])
    expire_allocations(now)
    if offered is None:
        raise NotFound(f"no space of {request.host} may be allocated")
    live = live_allocations(now)
    mine = Q(workspace_id=request.workspace_id) if request.topic else Q(
        workspace=None, owner_id=request.owner_id
    )  # fmt: skip
    if live.filter(mine, name=request.allocation_name).exists():
        raise Conflict(f"there is an allocation {request.allocation_name} already")
    size = request.expected_bytes or 0
    taken = live.filter(host=request.host).aggregate(all=Sum("size_bytes"))["all"] or 0
    if taken + size > offered:
        left = max(offered - taken, 0)
        raise Conflict(f"{request.host} has {left} bytes left, {size} are asked for")
    return PlacementAllocation.objects.create(
        owner_id=request.owner_id,
        workspace_id=request.workspace_id if request.topic else None,
        name=request.allocation_name,
        host=request.host,
        size_bytes=size,
        expires_at=now + timedelta(seconds=request.duration_s or 0),
    )


@transaction.atomic
def release(request: PlacementRequest, *, now: datetime) -> None:
    """Give the allocation back that the request names; its files stay. Raises NotFound."""
    found = find_allocation(request, now, host=request.host)
    PlacementAllocation.objects.filter(pk=found.pk).update(released_at=now)


def taken_bytes(allocation_id: int) -> int:
    """Bytes of an allocation that files have, or running transfers hold."""
    attempts = PlacementAttempt.objects.filter(allocation_id=allocation_id)
    counted = attempts.filter(Q(exit_code=None) | Q(exit_code=0))
    sums = counted.aggregate(all=Sum(Coalesce("size_bytes", "held_bytes", Value(0))))
    return int(sums["all"] or 0)


@transaction.atomic
def hold(
    request: PlacementRequest, lease: str, size_bytes: int | None, *, host: str, now: datetime
) -> int:
    """Let an attempt hold space for its file, all that is left where its size is not known.

    Returns the bytes that it may write. Raises NotFound, and Conflict where the file has no room.
    """
    found = find_allocation(request, now, host=host)
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


def expire_allocations(now: datetime) -> int:
    """End allocations whose time is over; their number."""
    over = PlacementAllocation.objects.filter(released_at=None, expires_at__lte=now)
    return over.update(released_at=F("expires_at"))


def release_of_workspaces(workspace_ids: Collection[int], *, now: datetime) -> int:
    """Release what the DAGs of these workspaces have allocated; their number."""
    live = PlacementAllocation.objects.filter(workspace__in=workspace_ids, released_at=None)
    return live.update(released_at=now)
