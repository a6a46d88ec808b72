"""Tests of the connection to a queue's batch system: asked for by a person, done by a worker.

The batch system is asked for its capacity with what pilots of the default frontend are submitted
with, and nothing is changed there. A request has one question, which ends with the time of its
task, so that nobody can keep workers busy by asking.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import partial

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, NotFound
from wms.core.loops import wake
from wms.elements.logins import BadLogin
from wms.elements.protocol import BadSettings, Capacity, Refused, Unreachable
from wms.pilots.connection_models import LIMIT_S, LOST_AFTER, ConnectionTest
from wms.pilots.credentials.choice import chosen_at, element_with
from wms.pilots.policy import require_steering
from wms.sites.models import Queue

log = structlog.get_logger(__name__)
#: The task that asks.
CONNECT_TASK = "wms.pilots.test_connection"
_LONGEST_DETAIL = 2000
_Outcome = ConnectionTest.Outcome
#: What an exception of an adapter tells, the first that fits.
_CAUSES: tuple[tuple[type[Exception], _Outcome], ...] = (
    (BadSettings, _Outcome.SETTINGS),
    (BadLogin, _Outcome.LOGIN),
    (Refused, _Outcome.REFUSED),
    (Unreachable, _Outcome.UNREACHABLE),
    (SoftTimeLimitExceeded, _Outcome.TIMEOUT),
)


@transaction.atomic
def ask_connection_test(
    queue_id: int, *, actor: Actor, reason: str = "", now: datetime | None = None
) -> ConnectionTest:
    """Have a worker ask the queue's batch system whether it answers; return the open test.

    Raises NotFound, NotPermitted, and Conflict while another test is under way.
    """
    now = now or timezone.now()
    # Locked, so that of two clicks at once one sees the test of the other.
    queues = Queue.objects.select_for_update(of=("self",)).select_related("site")
    queue = queues.filter(pk=queue_id).first()
    if queue is None:
        raise NotFound(f"There is no queue {queue_id}.")
    require_steering(actor, "test connections", queue.site)
    last = ConnectionTest.objects.filter(queue=queue).first()
    if last is not None and last.ended_at is None and now - last.asked_at < LOST_AFTER:
        raise Conflict(f"The connection of {queue} is being tested for {last.asked_by} already.")
    test, _ = ConnectionTest.objects.update_or_create(
        queue=queue,
        defaults={
            "asked_at": now, "asked_by": actor.name, "outcome": _Outcome.WAITING, "detail": "",
            "ended_at": None, "took_s": None, "total": None, "free": None,
        },
    )  # fmt: skip
    record_action("test connection", target=f"queue {queue}", actor=actor, reason=reason.strip())
    transaction.on_commit(partial(wake, CONNECT_TASK, queue.pk))
    return test


def run_connection_test(queue_id: int) -> None:
    """Ask the batch system, if a test of the queue is open, and store what came of it.

    A test that was asked for anew meanwhile is left to its own run.
    """
    test = ConnectionTest.objects.select_related("queue__site").filter(queue=queue_id).first()
    if test is None or test.ended_at is not None:
        return
    began_s = time.monotonic()
    ended: dict[str, object] = {}
    try:
        capacity = _ask(test.queue)
    except Exception as error:
        outcome = next((each for kind, each in _CAUSES if isinstance(error, kind)), _Outcome.FAULT)
        if outcome == _Outcome.FAULT:
            log.exception("connection_test_failed", queue=str(test.queue))
        ended = {"outcome": outcome, "detail": _words_of(error, outcome)}
    else:
        detail = "" if capacity.is_up else "its partition or entry takes no pilots now"
        ended = {
            "outcome": _Outcome.ANSWERED, "detail": detail,
            "total": capacity.total, "free": capacity.free,
        }  # fmt: skip
    open_one = ConnectionTest.objects.filter(queue=queue_id, asked_at=test.asked_at, ended_at=None)
    open_one.update(**ended, ended_at=timezone.now(), took_s=time.monotonic() - began_s)
    log.info("connection_tested", queue=str(test.queue), outcome=str(ended["outcome"]))


def _ask(queue: Queue) -> Capacity:
    chosen = chosen_at(queue, None, timezone.now())
    if chosen.refusal:
        raise BadLogin(chosen.refusal)
    return element_with(queue, chosen.credential_id).capacity()


def _words_of(error: Exception, outcome: ConnectionTest.Outcome) -> str:
    if outcome == _Outcome.TIMEOUT:
        return f"no answer within {LIMIT_S} s"
    words = str(error) if outcome != _Outcome.FAULT else f"{type(error).__name__}: {error}"
    return words.replace("\0", "")[:_LONGEST_DETAIL]
