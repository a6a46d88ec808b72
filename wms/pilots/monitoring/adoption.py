"""Adoption of pilots whose submission's answer was lost: their batch system is asked by its name.

Those that somebody has removed meanwhile are adopted too, so that they can be cancelled.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from wms.core.actors import Actor
from wms.elements.protocol import Element
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.pressure.submission import record_native_ids
from wms.pilots.states import PilotState
from wms.sites.models import Queue

_ACTOR = Actor.system("pilot-monitor")
#: A submission whose answer was never stored is looked for after this time, and believed not to
#: have happened (or only in part) after the other.
_ADOPT_AFTER = timedelta(minutes=2)
_GIVE_UP_BATCH_AFTER = timedelta(minutes=10)
_NOT_FOUND = "the answer to its submission was lost, and the batch system does not know it"
#: Time for which removed pilots are looked for, and cancelled again where they are still there.
REMINDED_FOR = timedelta(hours=1)


def removed_without_id(now: datetime) -> Q:
    """Condition for removed pilots that may run under an id that we were never told."""
    lately = Q(state=PilotState.REMOVED, is_forgotten=False, ended_at__gt=now - REMINDED_FOR)
    return lately & Q(missing_polls=0) & _without_id(now)


def _without_id(now: datetime) -> Q:
    return Q(native_id="", created_at__lt=now - _ADOPT_AFTER) & ~Q(batch="")


def adopt_batches(
    queue: Queue, element: Element, now: datetime, credential_id: int | None = None
) -> int:
    """Find pilots of submissions whose answer was lost; return how many were found.

    Those that were submitted with the credential that the element shows.
    """
    waiting = Q(state=PilotState.SUBMITTED) & _without_id(now)
    lost = Pilot.objects.filter(
        waiting | removed_without_id(now), queue=queue, credential=credential_id
    )
    batches = sorted(set(lost.values_list("batch", flat=True)))
    return sum(_adopt(queue, element, batch, now) for batch in batches)


def _adopt(queue: Queue, element: Element, batch: str, now: datetime) -> int:
    """Ask for one batch; its ids come in the order of submission, whoever called in meanwhile.

    One that the batch system does not know any more leaves an empty place among them. Fewer ids
    than pilots may be an answer that was cut: they are believed only after some time.
    """
    native_ids = element.adopt(batch)
    pilots = list(Pilot.objects.filter(queue=queue, batch=batch).order_by("pk"))
    is_old = pilots[0].created_at < now - _GIVE_UP_BATCH_AFTER
    known = [pair for pair in zip(pilots, native_ids, strict=False) if pair[1]]
    if len(known) < len(pilots) and not is_old:
        return 0
    record_native_ids([pilot for pilot, _ in known], [native_id for _, native_id in known])
    # Not those of which an id is stored: what became of them is told under that.
    never_started = [pilot.pk for pilot in pilots if not pilot.native_id]
    lifecycle.apply("abort", never_started, actor=_ACTOR, reason=_NOT_FOUND, ended_at=now)
    gone = Pilot.objects.filter(pk__in=never_started, state=PilotState.REMOVED)
    gone.update(missing_polls=1, missing_since=now)
    return len(known)
