"""Director, turns of all queues and polls of their batch systems, run once each for a test.

Also how many pilots each queue was sent, and the reasons that cut down its last request.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from wms.pilots.models import Pilot
from wms.pilots.monitoring import batch_poller
from wms.pilots.pressure import director, submitter
from wms.pilots.pressure_models import PressureRequest
from wms.sites.models import Queue


def at_once() -> float:
    """A clock for batch systems that answer within no time."""
    return 0.0


def direct(now: datetime) -> dict[str, submitter.TurnReport]:
    """Plan, and give each queue whose turn is due its turn; what the turns did, by queue."""
    asked = director.plan_requests(now).values()
    due = dict.fromkeys(each.queue_id for each in asked if each.is_due)
    names = {queue.pk: str(queue) for queue in Queue.objects.select_related("site")}
    turns = {names[pk]: submitter.serve(pk, now, clock=at_once) for pk in due}
    return {name: turn for name, turn in turns.items() if turn is not None}


def poll(now: datetime) -> dict[str, batch_poller.PollResult]:
    """Ask the batch system of every queue that has pilots; what came of it, by queue."""
    queues = Queue.objects.filter(pk__in=Pilot.objects.values("queue")).select_related("site")
    told = {str(queue): batch_poller.poll(queue.pk, now, clock=at_once) for queue in queues}
    return {name: attention for name, attention in told.items() if attention is not None}


def sent(now: datetime | None = None) -> dict[str, int]:
    """One cycle: how many pilots each queue was sent."""
    turns = direct(now or timezone.now())
    names = [str(queue) for queue in Queue.objects.select_related("site")]
    return {name: turns[name].submitted if name in turns else 0 for name in names}


def reasons_of(queue: Queue) -> list[str]:
    """What cut down the last request for the queue, and its last turn."""
    request = PressureRequest.objects.get(queue=queue)
    return [*request.reasons, *request.turn_reasons]
