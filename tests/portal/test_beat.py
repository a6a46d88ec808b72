from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import time_machine
from celery import current_app
from celery.signals import before_task_publish
from django.core.cache import cache

from portal.config.beat import LoopScheduler
from portal.config.leases import LEASE_S
from wms.core import idling, loops

pytestmark = pytest.mark.django_db


class Clock:
    """Beat, and the clocks that it looks at: all times in seconds."""

    def __init__(self, traveller: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch) -> None:
        self._traveller = traveller
        self._now_s = 0.0
        monkeypatch.setattr("portal.config.beat.time.monotonic", lambda: self._now_s)
        self.scheduler = LoopScheduler(app=current_app)
        self.asked: Counter[str] = Counter()

    def run(self, seconds: float) -> Counter[str]:
        """Number of times that each task was asked for in this time; each is taken up at once."""
        before = Counter(self.asked)
        until_s = self._now_s + seconds
        while self._now_s < until_s:
            pause_s = self.scheduler.tick()
            for task in self.asked:
                cache.delete(f"woken:{task}")
            self._now_s += pause_s
            self._traveller.shift(pause_s)
        return self.asked - before


@pytest.fixture
def clock(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with time_machine.travel("2026-11-23T12:00:00Z", tick=False) as traveller:
        clock = Clock(traveller, monkeypatch)

        def note(sender: str, **_: object) -> None:
            clock.asked[sender] += 1

        before_task_publish.connect(note)
        yield clock
        before_task_publish.disconnect(note)


def test_every_loop_has_its_first_turn_at_once(clock: Clock) -> None:
    assert clock.run(0.01) == Counter(loop.task for loop in loops.LOOPS.values())


@pytest.mark.slow
def test_an_active_installation_keeps_every_period(clock: Clock) -> None:
    found: Counter[str] = Counter()
    for _ in range(6):
        idling.note_activity()
        found += clock.run(10)

    assert found["wms.pilots.direct"] == pytest.approx(30, abs=1)
    assert found["wms.dags.negotiate"] == pytest.approx(12, abs=1)
    assert found["wms.notices.read"] == pytest.approx(6, abs=1)


@pytest.mark.slow
def test_an_idle_installation_takes_longer_turns_except_where_the_clock_matters(
    clock: Clock,
) -> None:
    found = clock.run(60)

    assert found["wms.pilots.direct"] == pytest.approx(6, abs=1)
    assert found["wms.notices.read"] == pytest.approx(2, abs=1)
    assert found["wms.pilots.monitor"] == pytest.approx(12, abs=1)
    assert found["wms.history.sample"] == pytest.approx(6, abs=1)


def test_activity_brings_the_periods_back_within_a_second(clock: Clock) -> None:
    clock.run(25)
    idling.note_activity()

    assert clock.run(3.5)["wms.pilots.direct"] >= 1


def test_beat_leaves_no_second_message_of_a_loop(clock: Clock) -> None:
    task = loops.LOOPS["notice-sweeper"].task
    for _ in range(3):
        next_one = LoopScheduler(app=current_app)
        next_one.tick()
        next_one.close()

    assert clock.asked[task] == 1


def test_of_two_beats_one_asks(clock: Clock) -> None:
    clock.run(1)
    second = LoopScheduler(app=current_app)
    cache.delete_many([f"woken:{loop.task}" for loop in loops.LOOPS.values()])
    before = Counter(clock.asked)

    second.tick()

    assert clock.asked == before


def test_a_beat_that_ends_leaves_the_lead_to_another_at_once(clock: Clock) -> None:
    clock.run(1)
    second = LoopScheduler(app=current_app)
    second.tick()
    before = Counter(clock.asked)

    clock.scheduler.close()
    second.tick()

    assert clock.asked - before == Counter(loop.task for loop in loops.LOOPS.values())


def test_a_beat_whose_lease_another_took_stands_back(clock: Clock) -> None:
    clock.run(1)
    # As after a pause of the whole host: the lease ran out, and another one took it.
    cache.set("lease:beat", "another", timeout=LEASE_S)

    clock.run(4)
    assert clock.run(4) == Counter()
    clock.scheduler.close()
    assert cache.get("lease:beat") == "another"
