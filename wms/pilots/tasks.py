"""Celery tasks of pilots: control loops, and tasks for one queue (submitter, batch poller)
or one remote frontend or factory.

The loops are director, monitor, calls of remote frontends and factories, suspected nodes, and
accounting, which also removes old logs and check results.
"""

from __future__ import annotations

from datetime import datetime

from celery import shared_task
from django.utils import timezone

from wms.core import loops
from wms.pilots.connection_models import LIMIT_S
from wms.pilots.factories import calling, turns
from wms.pilots.monitoring import accounting, batch_poller, monitor, suspects
from wms.pilots.pressure import director, submitter
from wms.pilots.program import checks
from wms.pilots.program.published import sweep_seen
from wms.pilots.protocol import logs
from wms.pilots.testing import connections

DIRECTOR = loops.register(
    loops.Loop(
        "director",
        director.DIRECT_TASK,
        period_s=2,
        run_cycle=director.run_cycle,
        deeds=("served",),
    )
)
MONITOR = loops.register(
    loops.Loop(
        "pilot-monitor",
        "wms.pilots.monitor",
        period_s=5,
        run_cycle=monitor.run_cycle,
        keeps_period=True,
    )
)

SUSPECTS = loops.register(
    loops.Loop("suspected-nodes", "wms.pilots.suspect", period_s=5, run_cycle=suspects.run_cycle)
)


def _account(now: datetime) -> loops.CycleReport:
    return {
        "accounted": accounting.account_pilots(),
        "checks_removed": checks.sweep_checks(now=now),
        "publications_removed": sweep_seen(now=now),
        # Last: the store of contents may be away.
        "logs_removed": logs.sweep_logs(now=now),
    }


ACCOUNTANT = loops.register(
    loops.Loop("pilot-accounts", "wms.pilots.account", period_s=10, run_cycle=_account)
)


FACTORY = loops.register(
    loops.Loop(
        "factory",
        "wms.pilots.call_frontends",
        period_s=5,
        run_cycle=turns.run_cycle,
        keeps_period=True,
    )
)


@shared_task(name=DIRECTOR.task, soft_time_limit=55, time_limit=60)
def direct() -> None:
    """Ask for pilots where there is work; a missed run delays them until the next."""
    loops.run(DIRECTOR)


@shared_task(name=MONITOR.task, soft_time_limit=55, time_limit=60)
def watch() -> None:
    """Judge silent pilots; a missed run delays the rescue of their jobs until the next."""
    loops.run(MONITOR)


@shared_task(name=SUSPECTS.task, soft_time_limit=55, time_limit=60)
def suspect() -> None:
    """Judge worker nodes; a missed run leaves a bad one its jobs until the next."""
    loops.run(SUSPECTS)


@shared_task(name=submitter.SERVE_TASK, soft_time_limit=240, time_limit=270)
def serve_queue(queue_id: int) -> None:
    """Submit or take back pilots of one queue; a missed run delays them until the next cycle."""
    submitter.serve(queue_id, timezone.now())


@shared_task(name=batch_poller.POLL_TASK, soft_time_limit=240, time_limit=270)
def poll_queue(queue_id: int) -> None:
    """Ask one queue's batch system for its pilots; a missed run delays it until the next cycle."""
    batch_poller.poll(queue_id, timezone.now())


@shared_task(
    name=connections.CONNECT_TASK,
    soft_time_limit=LIMIT_S,
    time_limit=LIMIT_S + 20,
)
def test_connection(queue_id: int) -> None:
    """Ask one queue's batch system whether it answers; a lost run is asked for by hand again."""
    connections.run_connection_test(queue_id)


@shared_task(name=FACTORY.task, soft_time_limit=55, time_limit=60)
def call_frontends() -> None:
    """Call remote frontends and factories; a missed run delays orders until the next."""
    loops.run(FACTORY)


@shared_task(name=turns.CALL_TASK, soft_time_limit=240, time_limit=270)
def call_frontend(remote_id: int) -> None:
    """Call one remote frontend; a missed run delays its orders until the next cycle."""
    turns.call_frontend(remote_id, timezone.now())


@shared_task(name=calling.CALL_FACTORY_TASK, soft_time_limit=240, time_limit=270)
def call_factory(factory_id: int) -> None:
    """Call one remote factory; a missed run delays its orders until the next cycle."""
    calling.call_factory(factory_id, timezone.now())


@shared_task(name=ACCOUNTANT.task, soft_time_limit=50, time_limit=60)
def account() -> None:
    """Store the accounts of ended pilots, remove old logs; a missed run does it later."""
    loops.run(ACCOUNTANT)
