"""Selectors of test pilots: tests of a queue, the open one, verdicts, and why a queue is closed.

A verdict is told by states and results, never by the words of a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import models

from wms.core.models import User
from wms.pilots.agent.session.image_selection import TRIAL
from wms.pilots.models import Pilot, PilotCheck, PilotEvent
from wms.pilots.selectors import visible_pilots
from wms.pilots.states import ALIVE, PENDING, PilotState, PilotTest
from wms.sites.models import Queue
from wms.sites.selectors import enabled_queues
from wms.sites.standing import standing_of


class Verdict(models.TextChoices):
    """Verdict of a test pilot on its queue, final or up to now."""

    WAITING = "waiting", "waiting"
    CHECKING = "checking", "checking"
    FIT = "fit", "fit"
    UNFIT = "unfit", "unfit"
    NEVER_STARTED = "never_started", "never started"
    CUT_SHORT = "cut_short", "cut short"


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a test pilot: verdict, failed checks, and what was asked by whom.

    `waited_s` is the time from its submission to its registration, or to now.
    """

    pilot: Pilot
    verdict: Verdict
    failed: Sequence[PilotCheck]
    checks: int
    checks_s: float
    takes_jobs: bool
    asked: PilotEvent | None
    closed: str
    waited_s: float

    @property
    def is_handed_over(self) -> bool:
        """Whether its batch system was asked to take it."""
        return bool(self.pilot.batch)


@dataclass(frozen=True, slots=True)
class QueueTest:
    """Test pilot in the list of its queue's tests."""

    pilot: Pilot
    verdict: Verdict
    failed: Sequence[PilotCheck]


def open_test(queue: Queue) -> Pilot | None:
    """Test pilot of the queue that is under way; at most one is."""
    alive = Pilot.objects.filter(queue=queue, state__in=ALIVE)
    return alive.exclude(test=PilotTest.NONE).first()


def queue_tests(user: User, queue: Queue, *, most: int) -> list[QueueTest]:
    """Visible test pilots of a queue with their verdicts, latest first. Two queries."""
    of_queue = visible_pilots(user).filter(queue=queue)
    tests = of_queue.exclude(test=PilotTest.NONE).order_by("-pk")
    pilots = list(tests[:most])
    checks = _checks_of([pilot.pk for pilot in pilots]) if pilots else {}
    return [
        QueueTest(
            pilot, verdict_of(pilot, checks.get(pilot.pk, ())), _failed(checks.get(pilot.pk, ()))
        )
        for pilot in pilots
    ]


def report_of(pilot: Pilot, checks: Sequence[PilotCheck], now: datetime) -> Report:
    """Report of a test pilot from its row and the results of its checks."""
    until = pilot.registered_at or pilot.ended_at or now
    return Report(
        pilot=pilot,
        verdict=verdict_of(pilot, checks),
        failed=_failed(checks),
        checks=len(checks),
        checks_s=sum(check.seconds for check in checks),
        takes_jobs=pilot.test == PilotTest.JOBS,
        asked=pilot.events.filter(event="test").first(),
        closed="" if pilot.ended_at else why_closed(pilot.queue, now),
        waited_s=max((until - pilot.created_at).total_seconds(), 0.0),
    )


def verdict_of(pilot: Pilot, checks: Sequence[PilotCheck]) -> Verdict:
    """Verdict by the state of the pilot and the results of its checks.

    A node is fit once its checks are over, its fence is chosen, and none has failed.
    """
    if pilot.state in PENDING:
        return Verdict.WAITING
    if pilot.registered_at is None:
        return Verdict.NEVER_STARTED
    if _failed(checks):
        return Verdict.UNFIT
    if checks and (pilot.state == PilotState.DONE or "network" in pilot.node):
        return Verdict.FIT
    return Verdict.CUT_SHORT if pilot.ended_at else Verdict.CHECKING


def why_closed(queue: Queue, now: datetime) -> str:
    """Why the director sends no pilots to this queue now, whoever asks; empty where it does."""
    if enabled_queues(now).filter(pk=queue.pk).exists():
        return ""
    if not queue.is_enabled:
        return "the queue is switched off"
    return f"the site is {standing_of(queue.site, now).reason}"


def _failed(checks: Sequence[PilotCheck]) -> list[PilotCheck]:
    """Failed checks, without trials that no node has to pass."""
    return [check for check in checks if not check.is_ok and check.name != TRIAL]


def _checks_of(pilot_ids: Collection[int]) -> dict[int, list[PilotCheck]]:
    found: dict[int, list[PilotCheck]] = defaultdict(list)
    for check in PilotCheck.objects.filter(pilot__in=pilot_ids).order_by("pk"):
        found[check.pilot_id].append(check)
    return found
