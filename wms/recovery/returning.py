"""Return of the database to an earlier state: what is done once, before anything runs on it.

Ids that were given after that state are given to nobody else: a pilot, a follower of events or a
person that knows one of them finds nothing, and not something else. Pilots that had called in go on
with the jobs that the database knows them to have, and take no more: they may run others of which
it knows nothing, under numbers of attempts that it would give again. Pilots that it does not know
are refused, and end. Each job that was open is told in its history that it may have been done.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import InvalidInput
from wms.core.restoration_models import Restoration
from wms.jobs import lifecycle as jobs
from wms.jobs.attempts import rescheduling
from wms.jobs.models import Job
from wms.jobs.states import TERMINAL, JobState
from wms.pilots import lifecycle as pilots
from wms.pilots.models import Pilot
from wms.pilots.pressure_models import ElementContact
from wms.pilots.states import PilotState
from wms.recovery.sql import ADVANCE_IDS

#: More ids of one kind than any installation gives in a day; so many for each day begun.
IDS_OF_A_DAY: Final = 100_000_000
_OPEN = sorted(frozenset(JobState.values) - TERMINAL)
_CALLED_IN = (PilotState.RUNNING, PilotState.STALLED)
_TOLD_AT_ONCE = 5000


def latest_return() -> Restoration | None:
    """The latest return; None in a database that never went back."""
    return Restoration.objects.order_by("-pk").first()


@transaction.atomic
def note_return(back_to: datetime, *, origin: str, actor: Actor, now: datetime) -> Restoration:
    """Note that the database went back, once for each return, and keep apart what came after.

    A return to this time that is noted already is the same one. Raises InvalidInput for a time
    that is to come.
    """
    if back_to > now:
        raise InvalidInput.of("is in the future", field="back_to")
    known = latest_return()
    if known is not None and known.back_to == back_to:
        return known
    days = (now - back_to) // timedelta(days=1) + 1
    with connection.cursor() as cursor:
        cursor.execute(ADVANCE_IDS, {"gap": days * IDS_OF_A_DAY})
    reason = f"the database went back to {back_to:%Y-%m-%d %H:%M:%S} UTC"
    _drain(reason, actor=actor)
    made = Restoration.objects.create(back_to=back_to, restored_at=now, origin=origin)
    record_action(
        "go back in time", target="the database", actor=actor, reason=origin,
        facts={"back_to": back_to.isoformat()},
    )  # fmt: skip
    return made


def _drain(reason: str, *, actor: Actor) -> None:
    """Let pilots that had called in take no more jobs; a loss of those costs jobs no attempt."""
    alive = Pilot.objects.filter(state__in=_CALLED_IN, is_remote=False).order_by("pk")
    ids = list(alive.select_for_update().values_list("pk", flat=True))
    rescheduling.spare_attempts_of_pilots(ids)
    # Those that were silent then have their time to call in from now on, as the others do.
    for pk in alive.filter(state=PilotState.STALLED).values_list("pk", flat=True):
        pilots.apply("recover", [pk], actor=actor)
        rescheduling.recover_jobs_of_pilot(pk, actor=actor)
    fresh = list(alive.filter(drain_reason="").values_list("pk", flat=True))
    Pilot.objects.filter(pk__in=fresh).update(drain_reason=reason)
    pilots.note("drain", {pk: {"reason": reason} for pk in fresh}, actor=actor)
    # What a batch system knew then is no measure for what it knows now.
    ElementContact.objects.update(seen_pilots=0)


def tell_jobs(restoration: Restoration, *, actor: Actor) -> int:
    """Tell each job that was open of the return, a batch at a time; how many were told now.

    It can be broken off and gone on with at any time: each is told once. Jobs that were submitted
    since have nothing to be told.
    """
    told = 0
    while not restoration.is_told:
        told += _tell_next(restoration, actor=actor)
    return told


@transaction.atomic
def _tell_next(restoration: Restoration, *, actor: Actor) -> int:
    # Whoever else is at it waits here, and goes on behind what was told.
    row = Restoration.objects.select_for_update().get(pk=restoration.pk)
    open_jobs = Job.objects.filter(
        pk__gt=row.noted_up_to, state__in=_OPEN, created_at__lte=row.back_to
    )
    ids = list(open_jobs.order_by("pk").values_list("pk", flat=True)[:_TOLD_AT_ONCE])
    facts = {"back_to": row.back_to.isoformat()}
    jobs.note("restored", dict.fromkeys(ids, facts), actor=actor)
    restoration.noted_up_to = ids[-1] if ids else row.noted_up_to
    restoration.is_told = row.is_told or len(ids) < _TOLD_AT_ONCE
    restoration.save(update_fields=["noted_up_to", "is_told"])
    return len(ids)
