"""Space that a storage's server itself keeps, by programs: `stork.reserve.SCHEME` and its like.

An allocation is a row of ours; where there is a program for the scheme of one of its storage's
endpoints, the server is asked too, before the row is made, and told when it is released. What it is
not told of ends there with its duration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from wms.placement.addresses import host_of, scheme_of
from wms.placement.conf import PlacementConf
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.modules.programs import find_programs
from wms.placement.modules.protocol import FAILED, Credential, ModuleFailed, TransferTask
from wms.placement.modules.workplaces import first_line, transfer_place
from wms.placement.request_ad import Checksums
from wms.placement.storages.endpoints import endpoint_lines
from wms.placement.storages.models import Storage

log = structlog.get_logger(__name__)
#: The file in which a program writes what the server calls the space.
_ANSWER: Final = "reservation"
_MOST_CHARACTERS: Final = 255
#: So many are given back at once, between transfers.
_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True)
class Reservation:
    """Space that the server of an endpoint keeps, under its own name."""

    endpoint: str
    name: str


def reserve(request: PlacementRequest, storage: Storage, task: TransferTask) -> Reservation | None:
    """Have the server keep the space; None where no program does so. Raises ModuleFailed."""
    programs = find_programs(task.conf.modules)
    for endpoint in endpoint_lines(storage.endpoints):
        name = f"stork.reserve.{scheme_of(endpoint)}"
        if name in programs.unusable:
            raise ModuleFailed(FAILED, programs.unusable[name])
        path = programs.reservers.get(scheme_of(endpoint))
        if path is not None:
            return Reservation(endpoint, _reserved(path, endpoint, request, task))
    return None


def _reserved(path: Path, endpoint: str, request: PlacementRequest, task: TransferTask) -> str:
    with transfer_place(task, [str(path.parent)], {"destination": endpoint}) as place:
        size, duration = str(request.expected_bytes or 0), str(request.duration_s or 0)
        words = [host_of(endpoint), place.path(_ANSWER), size, duration]
        end = place.run(str(path), words, {"PILOTAGE_ENDPOINT": endpoint})
        place.require_success(end, path.name)
        name = first_line(place.content(_ANSWER, 4096))
    if not name or len(name) > _MOST_CHARACTERS:
        raise ModuleFailed(FAILED, f"{path.name} has not told what the space is called")
    return name


def note(allocation: PlacementAllocation, kept: Reservation | None) -> None:
    """Write down what the server keeps for an allocation."""
    if kept is not None:
        allocation.endpoint, allocation.reservation = kept.endpoint, kept.name
        allocation.save(update_fields=["endpoint", "reservation"])


def give_up(kept: Reservation | None, task: TransferTask) -> None:
    """Give back what no allocation came of; what cannot be given back is logged."""
    if kept is None:
        return
    try:
        _returned(kept, task)
    except (ModuleFailed, OSError) as error:
        log.warning("placement_reservation_left", endpoint=kept.endpoint, reason=str(error))


def give_back(allocation: PlacementAllocation, task: TransferTask) -> None:
    """Have the server give back what it keeps for an allocation. Raises ModuleFailed."""
    if not allocation.reservation or allocation.returned_at is not None:
        return
    _returned(Reservation(allocation.endpoint, allocation.reservation), task)
    _mark(allocation)


def _returned(kept: Reservation, task: TransferTask) -> None:
    path = find_programs(task.conf.modules).releasers.get(scheme_of(kept.endpoint))
    if path is None:
        return
    with transfer_place(task, [str(path.parent)], {"destination": kept.endpoint}) as place:
        words = [host_of(kept.endpoint), kept.name]
        end = place.run(str(path), words, {"PILOTAGE_ENDPOINT": kept.endpoint})
        place.require_success(end, path.name)


def _mark(allocation: PlacementAllocation) -> None:
    PlacementAllocation.objects.filter(pk=allocation.pk).update(returned_at=timezone.now())


def unreturned(now: datetime) -> QuerySet[PlacementAllocation]:
    """Allocations that are released, and that servers still keep."""
    released = PlacementAllocation.objects.filter(
        released_at__isnull=False, returned_at=None, expires_at__gt=now
    )
    return released.exclude(reservation="")


@transaction.atomic
def take_released(now: datetime) -> list[PlacementAllocation]:
    """Some of those that servers still keep, for the caller to give back: each is taken once."""
    rows = unreturned(now).order_by("expires_at").select_for_update(skip_locked=True)[:_AT_ONCE]
    taken = list(rows)
    PlacementAllocation.objects.filter(pk__in=[each.pk for each in taken]).update(returned_at=now)
    return taken


def return_released(
    allocation: PlacementAllocation,
    conf: PlacementConf,
    *,
    pulse: Callable[[], None],
    credential: Callable[[str, str, int], Credential | None],
) -> None:
    """Have the server give back what was taken; what cannot be given back is logged."""
    kept = Reservation(allocation.endpoint, allocation.reservation)
    task = TransferTask(
        request_id=0,
        source_url="",
        destination_url=kept.endpoint,
        arguments="",
        workspace_id=0,
        directory="",
        checksums=Checksums(),
        expected_bytes=None,
        conf=conf,
        pulse=pulse,
        credential=credential,
    )
    give_up(kept, task)
