"""Celery tasks of data placement: run due requests, and the feeder where few are left, give back
what is owed to servers; control loop that ends lost attempts.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from celery import shared_task
from django.utils import timezone

from wms.core import loops
from wms.core.idling import SOON_S
from wms.placement import operations as services
from wms.placement import runner
from wms.placement.allocations import expire_allocations
from wms.placement.conf import feeder_conf, placement_conf
from wms.placement.feeding.running import FEED_TASK, run_feeder, wake_feeder
from wms.placement.owed_reservations import (
    GIVE_BACK_TASK,
    forget_over,
    give_back_owed,
    wake_to_give_back,
)
from wms.placement.submission import PLACEMENT_TASK

#: Time after which the process of an attempt that hangs on a file server is ended.
_BESIDES_S = 300


def _feeder_limit_s() -> int:
    conf = feeder_conf()
    return int(conf.limit_s) if conf else 0


def _sweep(now: datetime) -> loops.CycleReport:
    """End attempts that were lost with their runner and allocations whose time is over.

    Wakes a runner for due requests, and for the feeder. That this has nothing to submit, as often
    as it is asked, keeps no installation active.
    """
    lost = services.end_lost_attempts(now)
    expired = expire_allocations(now)
    due = len(services.due_requests(now))
    forget_over(now)
    if due:
        loops.wake(PLACEMENT_TASK)
    wake_to_give_back(now)
    soon = services.due_requests(now + timedelta(seconds=SOON_S))
    feeds = wake_feeder(now)
    return {
        "lost": len(lost), "expired": expired, "due": due, "soon": len(soon), "feeds": feeds
    }  # fmt: skip


PLACEMENT = loops.register(
    # An attempt is ended once, by whoever is first.
    loops.Loop(
        "placement",
        "wms.placement.look_after",
        period_s=10,
        run_cycle=_sweep,
        unlocked=True,
        deeds=("lost", "expired", "due", "soon"),
    )
)


# Acknowledged before the work: what the message stands for is in the database.
@shared_task(
    name=PLACEMENT_TASK,
    acks_late=False,
    time_limit=int(placement_conf().limit_s) + _BESIDES_S,
)
def run_placements() -> None:
    """Carry out due requests; a message that is lost is made up for by the next round."""
    runner.run_due()
    wake_to_give_back(timezone.now())
    # Not only with the next round: a low queue may be empty by then.
    wake_feeder(timezone.now())


# What it stands for is in the database, too.
@shared_task(
    name=GIVE_BACK_TASK,
    acks_late=False,
    time_limit=int(placement_conf().limit_s) + _BESIDES_S,
)
def give_back() -> None:
    """Give back what servers keep for nobody; a message that is lost is made up for likewise."""
    give_back_owed()


# The lease that the run takes is what counts, not the message.
@shared_task(name=FEED_TASK, acks_late=False, time_limit=_feeder_limit_s() + _BESIDES_S)
def feed() -> None:
    """Run the feeder if it is due; a message that is lost is made up for by the next round."""
    run_feeder()


@shared_task(name=PLACEMENT.task, soft_time_limit=55, time_limit=60)
def look_after() -> None:
    """End lost attempts and wake the service; what is missed is done in the next round."""
    loops.run(PLACEMENT)
