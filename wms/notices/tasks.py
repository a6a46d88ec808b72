"""The periodic tasks that tell people, send, and forget."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.notices import sending, sweeping, telling
from wms.notices.reading import READ_TASK

READER = loops.register(
    loops.Loop("notices", READ_TASK, period_s=10, run_cycle=telling.run_cycle, rests=True)
)
SENDER = loops.register(
    loops.Loop("notice-sender", telling.SEND_TASK, period_s=10, run_cycle=sending.run_cycle)
)
SWEEPER = loops.register(
    loops.Loop("notice-sweeper", "wms.notices.sweep", period_s=3600, run_cycle=sweeping.run_cycle)
)


@shared_task(name=READER.task, soft_time_limit=50, time_limit=60)
def read() -> None:
    """Tell people of what happened; a missed run tells them later."""
    loops.run(READER)


@shared_task(name=SENDER.task, soft_time_limit=110, time_limit=120)
def send() -> None:
    """Send what is due; a missed run sends it later."""
    loops.run(SENDER)


@shared_task(name=SWEEPER.task, soft_time_limit=290, time_limit=300)
def sweep() -> None:
    """Forget what is old, once an hour."""
    loops.run(SWEEPER)
