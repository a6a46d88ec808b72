from __future__ import annotations

from typing import Any

from celery import current_app
from celery.signals import before_task_publish
from django.core.cache import cache

from portal.beat import LoopScheduler
from wms.core import loops


def test_every_loop_has_its_period_in_the_schedule() -> None:
    scheduler = LoopScheduler(app=current_app)

    found = {name: entry.schedule.seconds for name, entry in scheduler.schedule.items()}
    assert found == {loop.name: loop.period_s for loop in loops.LOOPS.values()}


def test_a_turn_of_beat_leaves_no_second_message_of_a_loop() -> None:
    scheduler = LoopScheduler(app=current_app)
    entry = scheduler.schedule["notice-sweeper"]
    cache.delete(f"woken:{entry.task}")
    sent: list[str] = []

    def note(sender: str, **_: Any) -> None:
        sent.append(sender)

    before_task_publish.connect(note)
    for _ in range(3):
        scheduler.apply_entry(entry)
    before_task_publish.disconnect(note)

    assert sent == [entry.task]
