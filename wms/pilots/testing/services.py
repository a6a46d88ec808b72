"""Service that sends one test pilot to a queue, whatever the demand there.

Permitted and audited. The pilot proves its node; by default it takes no jobs.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from matching.plurals import pilots_are
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, NotFound, ReasonRequired
from wms.core.loops import wake
from wms.pilots import lifecycle
from wms.pilots.models import Pilot
from wms.pilots.monitoring.batch_poller import POLL_TASK
from wms.pilots.policy import require_steering
from wms.pilots.pressure.snapshot import free_in_scopes
from wms.pilots.states import ALIVE, PilotTest
from wms.pilots.testing.selectors import open_test, why_closed
from wms.sites.frontends.entries import read_entries
from wms.sites.models import Queue

#: Such a pilot is told to take no jobs before it starts, so that it ends by itself.
_NO_JOBS = "a test pilot that takes no jobs: it ends after its checks"


class OpenTest(Conflict):
    """Another test pilot of the queue is under way; `pilot` is its name, `number` its page's."""

    code = "open-test"

    def __init__(self, message: str, *, pilot: UUID, number: int) -> None:
        super().__init__(message)
        self.pilot, self.number = pilot, number


@transaction.atomic
def send_test_pilot(
    queue_id: int,
    *,
    actor: Actor,
    reason: str,
    takes_jobs: bool = False,
    now: datetime | None = None,
) -> Pilot:
    """Send exactly one pilot to a queue, also where the director sends none; return it.

    Its row is written at once; the batch system is asked within seconds. Limits of pilots hold, but
    not those that only pace the director. One that `takes_jobs` is sent only where pilots are sent
    now. Raises NotFound, NotPermitted, ReasonRequired, OpenTest while another test of the queue is
    under way, and Conflict where limits leave no place or jobs may not be taken.
    """
    now = now or timezone.now()
    # Locked, so that of two clicks at once one sees the test of the other.
    queues = Queue.objects.select_for_update(of=("self",)).select_related("site", "owner_group")
    queue = queues.filter(pk=queue_id).first()
    if queue is None:
        raise NotFound(f"There is no queue {queue_id}.")
    require_steering(actor, "send test pilots", queue.site)
    if not reason.strip():
        raise ReasonRequired("test")
    _refuse_second(queue)
    _refuse_full(queue)
    if takes_jobs:
        _refuse_jobs(queue, now)
    pilot = Pilot.objects.create(
        queue=queue,
        test=PilotTest.JOBS if takes_jobs else PilotTest.CHECKS,
        owner_id=queue.owner_id,
        owner_group_id=queue.owner_group_id,
        drain_reason="" if takes_jobs else _NO_JOBS,
    )
    facts = {"reason": reason.strip(), "takes_jobs": takes_jobs}
    lifecycle.note("test", {pilot.pk: facts}, actor=actor)
    record_action("send test pilot", target=f"pilot {pilot.pk}", actor=actor, reason=reason.strip())
    transaction.on_commit(partial(wake, POLL_TASK, queue.pk))
    return pilot


def _refuse_second(queue: Queue) -> None:
    other = open_test(queue)
    if other is not None:
        raise OpenTest(
            f"Test pilot {other.pk} ({other.uuid}) of {queue} is under way: it is {other.state}. "
            "Look at it, or remove it first.",
            pilot=other.uuid,
            number=other.pk,
        )


def _refuse_full(queue: Queue) -> None:
    alive = Pilot.objects.filter(queue=queue, state__in=ALIVE).count()
    if alive >= queue.max_pilots:
        there = pilots_are(alive, "there")
        raise Conflict(f"No pilot may be sent: limit of the queue {queue.max_pilots}: {there}.")
    free, limit = free_in_scopes(queue, None)
    if free < 1:
        raise Conflict(f"No pilot may be sent: {limit}.")


def _refuse_jobs(queue: Queue, now: datetime) -> None:
    if queue.has_owners:
        raise Conflict(
            "Pilots of this queue are private to those who need them; a test pilot is nobody's and "
            "takes no jobs."
        )
    if all(entry.frontend for entry in read_entries([queue])):
        raise Conflict(
            "Only frontends of their own have pilots here; a test pilot is of the default one and "
            "takes no jobs."
        )
    if closed := why_closed(queue, now):
        raise Conflict(f"A test pilot may take no jobs here now: {closed}.")
