"""Space that is owed to storages' servers: still kept there, and of no use to anybody here.

Owed is what was released without a word to the server, and what an attempt asked for that was
lost. Each is a row (`AskedReservation`), tried again, ever more seldom, until the server has given
it back or has ended it by itself. One at a time is tried at a server, and one that does not answer
is left alone for a while.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from wms.core.errors import PilotageError
from wms.core.loops import wake
from wms.placement.conf import PlacementConf, placement_conf
from wms.placement.credentials import credential_for
from wms.placement.models import PlacementAllocation, PlacementAttempt
from wms.placement.modules.protocol import ModuleFailed, TransferTask
from wms.placement.request_ad import Checksums
from wms.placement.reservation_models import AskedReservation, new_key
from wms.placement.reservations import NoAnswer, reserve_again, return_space
from wms.placement.runner import TAKING_S, AttemptHeartbeat

log = structlog.get_logger(__name__)
#: The task that gives back what is owed.
GIVE_BACK_TASK: Final = "wms.placement.give_back"
#: Between tries to give back: longer than one takes, so that no two run at once.
_PAUSE: Final = timedelta(minutes=5)
_SPARE: Final = timedelta(minutes=1)
#: A failure that took longer is taken for a server that does not answer.
_LONG_S: Final = 10.0
#: So many released allocations are written down at once.
_WRITTEN_AT_ONCE: Final = 1000


def wake_to_give_back(now: datetime) -> None:
    """Have a worker give back what is owed, if anything is."""
    if is_owed(now):
        wake(GIVE_BACK_TASK)


def is_owed(now: datetime) -> bool:
    """Whether servers still keep what is released, or was asked for by attempts that were lost."""
    return _unreturned(now).exists() or _due(now).exists()


def give_back_owed() -> int:
    """Have servers give back what is owed, one after the other; the number of tries."""
    conf, deadline_s, count = placement_conf(), time.monotonic() + TAKING_S, 0
    _write_down_released(timezone.now())
    while (owed := take_owed(timezone.now(), conf.limit_s)) is not None:
        _try(owed, conf)
        count += 1
        if time.monotonic() > deadline_s:
            wake_to_give_back(timezone.now())
            break
    return count


def forget_over(now: datetime) -> None:
    """Delete what servers have ended by themselves."""
    AskedReservation.objects.filter(expires_at__lte=now).delete()


def _unreturned(now: datetime) -> QuerySet[PlacementAllocation]:
    """Allocations that are released, and that servers still keep."""
    released = PlacementAllocation.objects.filter(
        released_at__isnull=False, returned_at=None, expires_at__gt=now
    )
    return released.exclude(reservation="")


@transaction.atomic
def _write_down_released(now: datetime) -> None:
    """Turn what is released into rows that are tried again."""
    rows = _unreturned(now).select_related("workspace").order_by("pk")
    released = list(rows.select_for_update(skip_locked=True, of=["self"])[:_WRITTEN_AT_ONCE])
    AskedReservation.objects.bulk_create(
        AskedReservation(
            key=new_key(),
            owner_id=each.owner_id,
            limited_to=each.workspace.limited_to if each.workspace is not None else None,
            attempt_number=0,
            endpoint=each.endpoint,
            reservation=each.reservation,
            size_bytes=each.size_bytes,
            duration_s=int((each.expires_at - now).total_seconds()),
            due_at=now,
            expires_at=each.expires_at,
        )
        for each in released
    )
    ids = [each.pk for each in released]
    PlacementAllocation.objects.filter(pk__in=ids).update(returned_at=now)


def _due(now: datetime) -> QuerySet[AskedReservation]:
    """Asks of attempts that have ended, or whose rows are gone, at servers that may answer."""
    attempt = PlacementAttempt.objects.filter(
        request=OuterRef("request"), number=OuterRef("attempt_number"), exit_code=None
    )
    silent = AskedReservation.objects.filter(endpoint=OuterRef("endpoint"), silent_until__gt=now)
    due = AskedReservation.objects.filter(due_at__lte=now, expires_at__gt=now)
    return due.exclude(Exists(attempt)).exclude(Exists(silent))


@transaction.atomic
def take_owed(now: datetime, limit_s: float) -> AskedReservation | None:
    """Something that a server still keeps, for the caller to give back: no two take the same.

    `limit_s` is the time limit of one try.
    """
    owed = _due(now).order_by("due_at", "pk").select_for_update(skip_locked=True).first()
    if owed is not None:
        # The longer it is owed, the less often it is tried.
        asked_at = owed.expires_at - timedelta(seconds=owed.duration_s)
        pause = max(_PAUSE, now - asked_at, timedelta(seconds=limit_s) + _SPARE)
        owed.due_at = now + pause
        # Until it has answered nobody else asks it; a mark of who was killed lapses by itself.
        owed.silent_until = now + timedelta(seconds=limit_s) + _SPARE
        owed.save(update_fields=["due_at", "silent_until"])
    return owed


def _try(owed: AskedReservation, conf: PlacementConf) -> None:
    """Have the server give back what was taken; what cannot be given back is tried again."""
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
        pulse=AttemptHeartbeat(conf.limit_s, lambda: True),
        credential=partial(credential_for, owed.owner_id, limited_to=owed.limited_to),
    )
    row, began_s = AskedReservation.objects.filter(pk=owed.pk), time.monotonic()
    try:
        kept = reserve_again(owed, task)
        if kept is not None:
            return_space(kept, task)
    except (ModuleFailed, PilotageError, OSError) as error:
        log.warning("placement_reservation_left", endpoint=owed.endpoint, reason=str(error))
        # A program may have a time limit of its own.
        is_silent = isinstance(error, NoAnswer) or time.monotonic() - began_s > _LONG_S
        row.update(silent_until=timezone.now() + _PAUSE if is_silent else None)
        return
    if kept is not None:
        row.delete()
    else:
        row.update(silent_until=None)
