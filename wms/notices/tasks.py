"""Control loops of notices and their Celery tasks: fan-out, sending, removal of old ones."""

from __future__ import annotations

from celery import shared_task

from wms.core import loops
from wms.notices import fanout, retention, sending
from wms.notices.occurrences import READ_TASK

READER = loops.register(
    loops.Loop("notices", READ_TASK, period_s=10, run_cycle=fanout.run_cycle, rests=True)
)
SENDER = loops.register(
    # Each process takes the channels that no other one sends to.
    loops.Loop(
        "notice-sender", fanout.SEND_TASK, period_s=10, run_cycle=sending.run_cycle, unlocked=True
    )
)
SWEEPER = loops.register(
    loops.Loop("notice-sweeper", "wms.notices.sweep", period_s=3600, run_cycle=retention.run_cycle)
)


@shared_task(name=READER.task, soft_time_limit=50, time_limit=60)
def read() -> None:
    """Make notices of what was announced; a missed run makes them later."""
    loops.run(READER)


@shared_task(name=SENDER.task, soft_time_limit=110, time_limit=120)
def send() -> None:
    """Send what is due; a missed run sends it later."""
    loops.run(SENDER)


@shared_task(name=SWEEPER.task, soft_time_limit=290, time_limit=300)
def sweep() -> None:
    """Remove old notices and deliveries, once an hour."""
    loops.run(SWEEPER)
