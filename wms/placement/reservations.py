"""Space that a storage's server itself keeps, by programs: `stork.reserve.SCHEME` and its like.

An allocation is a row of ours; where there is a program for the scheme of one of its storage's
endpoints, the server is asked too, before the row is made, and told when it is released. Another
row tells of the ask until then (`AskedReservation`). What nobody has given back by then is owed to
the server (`wms.placement.owed_reservations`).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from django.utils import timezone

from wms.core.errors import PilotageError
from wms.placement.addresses import host_of, scheme_of
from wms.placement.models import PlacementAllocation, PlacementRequest
from wms.placement.modules.programs import find_programs
from wms.placement.modules.protocol import FAILED, TIME_IS_OVER, ModuleFailed, TransferTask
from wms.placement.modules.workplaces import TransferPlace, first_line, transfer_place
from wms.placement.reservation_models import AskedReservation, new_key
from wms.placement.storages.endpoints import endpoint_lines
from wms.placement.storages.models import Storage

log = structlog.get_logger(__name__)
#: The file in which a program writes what the server calls the space.
_ANSWER: Final = "reservation"
_MOST_CHARACTERS: Final = 255
#: An attempt that was ended by others gives back itself what it has asked for, within this.
_GRACE: Final = timedelta(minutes=1)
#: A shell tells of a program that a signal ended by 128 and the signal.
_SIGNALS_FROM: Final = 128
#: Exit code of a program whose server has refused, and keeps nothing: there is no room.
REFUSED: Final = errno.ENOSPC


class ProgramFailed(ModuleFailed):
    """A program ended by itself without success: what the server has heard only it knows."""


class NoAnswer(ModuleFailed):
    """A program was ended before the server's answer was known: it may have heard, or be away."""


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
            return Reservation(endpoint, _first_reserved(path, asked, task), asked.key)
    return None


def _written_down(endpoint: str, request: PlacementRequest, task: TransferTask) -> AskedReservation:
    now, duration_s = timezone.now(), request.duration_s or 0
    return AskedReservation.objects.create(
        key=new_key(),
        owner_id=request.owner_id,
        request_id=request.pk,
        limited_to=request.workspace.limited_to,
        attempt_number=task.attempt_number,
        endpoint=endpoint,
        size_bytes=request.expected_bytes or 0,
        duration_s=duration_s,
        due_at=now + _GRACE,
        expires_at=now + timedelta(seconds=duration_s),
    )


def reserve_again(asked: AskedReservation, task: TransferTask) -> Reservation | None:
    """Reservation that a server keeps for an ask, which is repeated where its name is not known.

    None where there is no program any more. Raises ModuleFailed.
    """
    if asked.reservation:
        return Reservation(asked.endpoint, asked.reservation, asked.key)
    path = find_programs(task.conf.modules).reservers.get(scheme_of(asked.endpoint))
    if path is None:
        return None
    return Reservation(asked.endpoint, _reserved(path, asked, task), asked.key)


def _first_reserved(path: Path, asked: AskedReservation, task: TransferTask) -> str:
    """Name of the space; the row goes where the ask is surely not heard, or refused."""
    try:
        return _reserved(path, asked, task)
    except (NoAnswer, ProgramFailed, _NotNamed) as error:
        if isinstance(error, ProgramFailed) and error.exit_code == REFUSED:
            AskedReservation.objects.filter(pk=asked.pk).delete()
        raise
    except (ModuleFailed, PilotageError, OSError):
        # The program was not run.
        AskedReservation.objects.filter(pk=asked.pk).delete()
        raise


class _NotNamed(ModuleFailed):
    """The server keeps space, but how it calls it was not told."""


def _reserved(path: Path, asked: AskedReservation, task: TransferTask) -> str:
    with transfer_place(task, [str(path.parent)], {"destination": asked.endpoint}) as place:
        size, duration = str(asked.size_bytes), str(asked.duration_s)
        words = [host_of(asked.endpoint), place.path(_ANSWER), size, duration]
        _run(place, path, words, _environment(asked.endpoint, asked.key))
        name = first_line(place.content(_ANSWER, 4096))
    if not name or len(name) > _MOST_CHARACTERS:
        raise _NotNamed(FAILED, f"{path.name} has not told what the space is called")
    AskedReservation.objects.filter(pk=asked.pk).update(reservation=name)
    return name


def _run(
    place: TransferPlace, path: Path, words: Sequence[str], environment: dict[str, str]
) -> None:
    """Run a program. Raises NoAnswer and ProgramFailed."""
    try:
        end = place.run(str(path), words, environment)
    except (ModuleFailed, OSError) as error:
        code = error.exit_code if isinstance(error, ModuleFailed) else FAILED
        raise NoAnswer(code, str(error)) from error
    try:
        place.require_success(end, path.name)
    except ModuleFailed as error:
        code = end.exit_code
        if end.failure or code < 0 or code == TIME_IS_OVER or code > _SIGNALS_FROM:
            raise NoAnswer(error.exit_code, error.message) from None
        raise ProgramFailed(error.exit_code, error.message) from None


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
    if kept is None:
        return
    try:
        return_space(kept, task)
    except (ModuleFailed, OSError) as error:
        log.warning("placement_reservation_left", endpoint=kept.endpoint, reason=str(error))
    else:
        AskedReservation.objects.filter(pk=kept.key).delete()


def give_back(allocation: PlacementAllocation, task: TransferTask) -> None:
    """Have the server give back what it keeps for an allocation. Raises ModuleFailed."""
    if not allocation.reservation or allocation.returned_at is not None:
        return
    return_space(Reservation(allocation.endpoint, allocation.reservation), task)
    PlacementAllocation.objects.filter(pk=allocation.pk).update(returned_at=timezone.now())


def return_space(kept: Reservation, task: TransferTask) -> None:
    """Have the server give space back; nothing without a program. Raises ModuleFailed."""
    path = find_programs(task.conf.modules).releasers.get(scheme_of(kept.endpoint))
    if path is None:
        return
    with transfer_place(task, [str(path.parent)], {"destination": kept.endpoint}) as place:
        words = [host_of(kept.endpoint), kept.name]
        _run(place, path, words, _environment(kept.endpoint, kept.key))
