"""Monitor, the control loop of pilots: stalls silent ones with their jobs, wakes batch polls.

Pilots that stay silent fail, and others get their jobs; later where no pilot at all is heard.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.loops import wake
from wms.jobs.attempts import rescheduling
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.monitoring.adoption import removed_without_id
from wms.pilots.monitoring.batch_poller import LOG_KEPT, POLL_TASK, unsettled_removals
from wms.pilots.pressure.backoff import Kind
from wms.pilots.pressure.selectors import queues_of_expired_requests
from wms.pilots.pressure.submitter import SERVE_TASK
from wms.pilots.pressure_models import ElementContact
from wms.pilots.states import ALIVE, PilotState
from wms.sites.models import Queue

_ACTOR = Actor.system("pilot-monitor")
#: A stalled pilot is given up after so many times the silence that made it stalled.
_GIVE_UP_FACTOR = 2
#: Or after this time, as long as no other pilot is heard either.
_OUTAGE_LIMIT = timedelta(minutes=45)
#: Batch systems asked in one round.
_ASKED_AT_ONCE = 50


def run_cycle(now: datetime) -> dict[str, Any]:
    """One cycle: wake the polls that are due, and judge the silent pilots."""
    due = queues_due(now)
    for queue_id in due:
        wake(POLL_TASK, queue_id)
    # The director, which wakes them otherwise, has not renewed these.
    for queue_id in queues_of_expired_requests(now):
        wake(SERVE_TASK, queue_id)
    return {
        "asked": len(due),
        "stalled": stall_silent(now),
        "given_up": give_up_stalled(now),
    }


def queues_due(now: datetime) -> list[int]:
    """Queues with pilots to ask for or to clean up after, without those that back off.

    At most so many as are asked within a cycle, those first that have waited longest.
    """
    contacts = ElementContact.objects.filter(queue=OuterRef("pk"), kind=Kind.POLL)
    pausing = contacts.filter(next_at__gt=now)
    own = Pilot.objects.filter(queue=OuterRef("pk"), credential=None)
    # Of other credentials each has a pause of its own: there are few such pilots, if any.
    others = Pilot.objects.filter(
        ~Exists(
            ElementContact.objects.filter(
                queue=OuterRef("queue"),
                credential=OuterRef("credential"),
                kind=Kind.POLL,
                next_at__gt=now,
            )
        ),
        queue=OuterRef("pk"),
        credential__isnull=False,
    )
    queues = (
        Queue.objects.filter(
            (~Exists(pausing.filter(credential=None)) & _has_some_to_ask_for(own, now))
            | _has_some_to_ask_for(others, now)
        )
        .annotate(asked_at=Subquery(contacts.order_by("next_at").values("next_at")[:1]))
        .order_by(F("asked_at").asc(nulls_first=True), "pk")
    )
    return list(queues.values_list("pk", flat=True)[:_ASKED_AT_ONCE])


def _has_some_to_ask_for(pilots: QuerySet[Pilot], now: datetime) -> Q:
    to_forget = pilots.filter(is_forgotten=False, ended_at__lt=now - LOG_KEPT)
    return Q(
        Exists(pilots.filter(state__in=ALIVE))
        | Exists(pilots.filter(unsettled_removals(now)))
        | Exists(pilots.filter(removed_without_id(now)))
        | Exists(to_forget.exclude(native_id=""))
    )


@transaction.atomic
def stall_silent(now: datetime) -> int:
    """Mark running pilots without a heartbeat for too long, and their jobs, as stalled."""
    limit_s = conf().pilot_stalled_after_s
    silent = list(
        Pilot.objects.filter(
            state=PilotState.RUNNING, heartbeat_at__lt=now - timedelta(seconds=limit_s)
        ).values_list("pk", flat=True)
    )
    reason = f"no heartbeat for {limit_s:g} s"
    applied = lifecycle.apply("stall", silent, actor=_ACTOR, reason=reason)
    rescheduling.stall_jobs_of_pilots(
        applied.changed, actor=_ACTOR, reason=f"the pilot sent {reason}"
    )
    return len(applied.changed)


@transaction.atomic
def give_up_stalled(now: datetime) -> int:
    """Give the jobs of pilots that stayed silent long after they stalled to other pilots.

    While nobody else is heard either, the silence is probably our own: then it may last much
    longer, because the pilots go on with their payloads and report when they can.
    """
    limit = _GIVE_UP_FACTOR * timedelta(seconds=conf().pilot_stalled_after_s)
    if not _others_are_heard(now, limit):
        limit = max(limit, _OUTAGE_LIMIT)
    silent = Pilot.objects.filter(state=PilotState.STALLED, state_since__lt=now - limit)
    reason = f"no heartbeat for {limit.total_seconds():g} s after it had stalled"
    applied = lifecycle.apply(
        "fail", list(silent.values_list("pk", flat=True)), actor=_ACTOR, reason=reason, ended_at=now
    )
    rescheduling.give_up_jobs_of_pilots(
        applied.changed,
        actor=_ACTOR,
        reason=f"the pilot sent {reason}",
    )
    return len(applied.changed)


def _others_are_heard(now: datetime, since: timedelta) -> bool:
    """True when some pilot has been heard all this time, so that others could have been."""
    return Pilot.objects.filter(
        state=PilotState.RUNNING,
        state_since__lt=now - since,
        heartbeat_at__gte=now - timedelta(seconds=conf().pilot_stalled_after_s),
    ).exists()
