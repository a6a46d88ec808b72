"""Reasons why a request that is due has not begun: storages that are off, limits reached."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q

from wms.placement.conf import placement_conf
from wms.placement.models import PlacementRequest
from wms.placement.states import WAITING, RequestState
from wms.placement.storages.models import Storage


def why_it_waits(request: PlacementRequest, now: datetime) -> str:
    """Obstacle to beginning a request; empty where nothing is, or it does not wait.

    One whose next attempt comes later waits for that time, which its row tells.
    """
    if request.state not in WAITING or (request.due_at is not None and request.due_at > now):
        return ""
    return "; ".join(dict.fromkeys(_obstacles(request)))


def _obstacles(request: PlacementRequest) -> Iterator[str]:
    most_of_owner = placement_conf().per_user
    if most_of_owner and (count := _running(Q(owner=request.owner_id))) >= most_of_owner:
        yield f"{count} requests of {request.owner} run, of {most_of_owner} at most"
    source, destination = request.source_storage, request.destination_storage
    for storage in (source, destination):
        if storage is None:
            continue
        if not storage.is_enabled:
            yield f"storage {storage.name} is off"
        most = storage.max_transfers
        moving = Q(source_storage=storage) | Q(destination_storage=storage)
        if most is not None and (count := _running(moving)) >= most:
            yield f"{count} transfers from and to {storage.name} run, of {most} at most"
    limits = [each.max_link_transfers for each in (source, destination) if each is not None]
    most = min((limit for limit in limits if limit is not None), default=None)
    if most is not None and (count := _running(_on_link(source, destination))) >= most:
        ends = " and ".join(each.name if each else "elsewhere" for each in (source, destination))
        yield f"{count} transfers between {ends} run, of {most} at most"


def _on_link(one: Storage | None, other: Storage | None) -> Q:
    return Q(source_storage=one, destination_storage=other) | Q(
        source_storage=other, destination_storage=one
    )


def _running(condition: Q) -> int:
    return PlacementRequest.objects.filter(condition, state=RequestState.PROCESSING).count()
