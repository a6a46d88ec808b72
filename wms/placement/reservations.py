"""Space that a storage's server itself keeps, by programs: `stork.reserve.SCHEME` and its like.

An allocation is a row of ours; where there is a program for the scheme of one of its storage's
endpoints, the server is asked too, before the row is made, and told when it is released. Another
row tells of the ask until then (`AskedReservation`). What a server is not told of ends there with
its duration.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from wms.placement.addresses import host_of, scheme_of
from wms.placement.conf import PlacementConf
from wms.placement.models import PlacementAllocation, PlacementAttempt, PlacementRequest
from wms.placement.modules.programs import find_programs
from wms.placement.modules.protocol import (
    FAILED,
    TIME_IS_OVER,
    Credential,
    ModuleFailed,
    TransferTask,
)
from wms.placement.modules.workplaces import first_line, transfer_place
from wms.placement.request_ad import Checksums
from wms.placement.reservation_models import AskedReservation
from wms.placement.storages.endpoints import endpoint_lines
from wms.placement.storages.models import Storage

log = structlog.get_logger(__name__)
#: The file in which a program writes what the server calls the space.
_ANSWER: Final = "reservation"
_MOST_CHARACTERS: Final = 255
#: An attempt that was ended by others gives back itself what it has asked for, within this.
_GRACE: Final = timedelta(minutes=1)
#: Between tries to give back: longer than one takes, so that no two run at once.
_PAUSE: Final = timedelta(minutes=5)
_SPARE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Space that the server of an endpoint keeps, under its own name."""

    endpoint: str
    name: str
    #: Of the row that tells that it was asked for.
    key: str = ""


def reserve(request: PlacementRequest, storage: Storage, task: TransferTask) -> Reservation | None:
    """Have the server keep the space; None where no program does so. Raises ModuleFailed.

    That it is asked is written down before: what it keeps for an attempt that is killed is given
    back by the service.
    """
    programs = find_programs(task.conf.modules)
    for endpoint in endpoint_lines(storage.endpoints):
        name = f"stork.reserve.{scheme_of(endpoint)}"
        if name in programs.unusable:
            raise ModuleFailed(FAILED, programs.unusable[name])
        path = programs.reservers.get(scheme_of(endpoint))
        if path is not None:
            asked = _written_down(endpoint, request, task)
            return Reservation(endpoint, _reserved(path, asked, task, is_first=True), asked.key)
    return None


def _written_down(endpoint: str, request: PlacementRequest, task: TransferTask) -> AskedReservation:
    now, duration_s = timezone.now(), request.duration_s or 0
    return AskedReservation.objects.create(
        key=secrets.token_hex(16),
        owner_id=request.owner_id,
        request_id=request.pk,
        attempt_number=task.attempt_number,
        endpoint=endpoint,
        size_bytes=request.expected_bytes or 0,
        duration_s=duration_s,
        due_at=now + _GRACE,
        expires_at=now + timedelta(seconds=duration_s),
    )


def _reserved(
    path: Path, asked: AskedReservation, task: TransferTask, *, is_first: bool = False
) -> str:
    """Name of the space; the row goes where the first ask is surely not heard, or refused."""
    is_asked = False
    try:
        with transfer_place(task, [str(path.parent)], {"destination": asked.endpoint}) as place:
            size, duration = str(asked.size_bytes), str(asked.duration_s)
            words = [host_of(asked.endpoint), place.path(_ANSWER), size, duration]
            is_asked = True
            end = place.run(str(path), words, _environment(asked.endpoint, asked.key))
            # What a signal or a time limit ended may have been heard by the server.
            is_asked = bool(end.failure) or end.exit_code <= 0 or end.exit_code == TIME_IS_OVER
            place.require_success(end, path.name)
            name = first_line(place.content(_ANSWER, 4096))
    except (ModuleFailed, OSError):
        if is_first and not is_asked:
            AskedReservation.objects.filter(pk=asked.pk).delete()
        raise
    if not name or len(name) > _MOST_CHARACTERS:
        raise ModuleFailed(FAILED, f"{path.name} has not told what the space is called")
    AskedReservation.objects.filter(pk=asked.pk).update(reservation=name)
    return name


def _environment(endpoint: str, key: str) -> dict[str, str]:
    return {"PILOTAGE_ENDPOINT": endpoint, "PILOTAGE_RESERVATION": key}


def note(allocation: PlacementAllocation, kept: Reservation | None) -> None:
    """Write down what the server keeps for an allocation, in the transaction that makes it."""
    if kept is not None:
        allocation.endpoint, allocation.reservation = kept.endpoint, kept.name
        allocation.save(update_fields=["endpoint", "reservation"])
        AskedReservation.objects.filter(pk=kept.key).delete()


def give_up(kept: Reservation | None, task: TransferTask) -> None:
    """Give back what no allocation came of; the service tries again what cannot be given back."""
    if kept is not None and _is_given_back(kept, task):
        AskedReservation.objects.filter(pk=kept.key).delete()


def _is_given_back(kept: Reservation, task: TransferTask) -> bool:
    try:
        _returned(kept, task)
    except (ModuleFailed, OSError) as error:
        log.warning("placement_reservation_left", endpoint=kept.endpoint, reason=str(error))
        return False
    return True


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
        end = place.run(str(path), words, _environment(kept.endpoint, kept.key))
        place.require_success(end, path.name)


def _mark(allocation: PlacementAllocation) -> None:
    PlacementAllocation.objects.filter(pk=allocation.pk).update(returned_at=timezone.now())


def is_owed(now: datetime) -> bool:
    """Whether servers still keep what is released, or was asked for by attempts that were lost."""
    return _unreturned(now).exists() or _lost(now).exists()


def _unreturned(now: datetime) -> QuerySet[PlacementAllocation]:
    """Allocations that are released, and that servers still keep."""
    released = PlacementAllocation.objects.filter(
        released_at__isnull=False, returned_at=None, expires_at__gt=now
    )
    return released.exclude(reservation="")


def _lost(now: datetime) -> QuerySet[AskedReservation]:
    """Asks of attempts that have ended, or whose rows are gone."""
    attempt = PlacementAttempt.objects.filter(
        request=OuterRef("request"), number=OuterRef("attempt_number"), exit_code=None
    )
    due = AskedReservation.objects.filter(due_at__lte=now, expires_at__gt=now)
    return due.exclude(Exists(attempt))


@transaction.atomic
def take_owed(now: datetime, limit_s: float) -> PlacementAllocation | AskedReservation | None:
    """Something that a server still keeps, for the caller to give back: no two take the same.

    `limit_s` is the time limit of one program.
    """
    released = _unreturned(now).order_by("expires_at").select_for_update(skip_locked=True).first()
    if released is not None:
        released.returned_at = now
        released.save(update_fields=["returned_at"])
        return released
    lost = _lost(now).order_by("due_at").select_for_update(skip_locked=True).first()
    if lost is not None:
        # The longer it is owed, the less often it is tried.
        asked_at = lost.expires_at - timedelta(seconds=lost.duration_s)
        pause = max(_PAUSE, now - asked_at, timedelta(seconds=limit_s) + _SPARE)
        lost.due_at = now + pause
        lost.save(update_fields=["due_at"])
    return lost


def limit_of(owed: PlacementAllocation | AskedReservation) -> int | None:
    """Id of the frontend that what is owed is limited to; None: to none."""
    made = owed if isinstance(owed, PlacementAllocation) else owed.request
    workspace = made.workspace if made is not None else None
    return workspace.limited_to if workspace is not None else None


def forget_over(now: datetime) -> None:
    """Delete what servers have ended by themselves."""
    AskedReservation.objects.filter(expires_at__lte=now).delete()


def return_owed(
    owed: PlacementAllocation | AskedReservation,
    conf: PlacementConf,
    *,
    pulse: Callable[[], None],
    credential: Callable[[str, str, int], Credential | None],
) -> None:
    """Have the server give back what was taken; what cannot be given back is logged.

    Of what was asked for it is tried again until the server ends it.
    """
    task = TransferTask(
        request_id=0,
        source_url="",
        destination_url=owed.endpoint,
        arguments="",
        workspace_id=0,
        directory="",
        checksums=Checksums(),
        expected_bytes=None,
        conf=conf,
        pulse=pulse,
        credential=credential,
    )
    if isinstance(owed, PlacementAllocation):
        _is_given_back(Reservation(owed.endpoint, owed.reservation), task)
        return
    kept = _asked_again(owed, task)
    if kept is not None and _is_given_back(kept, task):
        AskedReservation.objects.filter(pk=kept.key).delete()
        return
    # A server that does not answer is not asked about everything else that it keeps.
    until = timezone.now() + _PAUSE
    AskedReservation.objects.filter(endpoint=owed.endpoint, due_at__lt=until).update(due_at=until)


def _asked_again(asked: AskedReservation, task: TransferTask) -> Reservation | None:
    """Reservation that a server keeps for an ask, which is repeated where its name is not known."""
    if asked.reservation:
        return Reservation(asked.endpoint, asked.reservation, asked.key)
    path = find_programs(task.conf.modules).reservers.get(scheme_of(asked.endpoint))
    if path is None:
        return None
    try:
        return Reservation(asked.endpoint, _reserved(path, asked, task), asked.key)
    except (ModuleFailed, OSError) as error:
        log.warning("placement_reservation_unknown", endpoint=asked.endpoint, reason=str(error))
        return None
