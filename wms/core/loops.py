"""Control loops: registry, one cycle under a lock with its report stored, and wake-ups.

A loop is periodic work that is correct when skipped, repeated, or started twice at once. Also the
report of a loop's last cycle, and the wake-up of any Celery task: without a broker, the next period
does the work.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from celery import current_app
from django.core.cache import cache
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules
from kombu.exceptions import OperationalError
from kombu.pools import ProducerPool, producers
from redis.exceptions import RedisError

from wms.core.database.locks import advisory_lock
from wms.core.idling import IDLE_AFTER_S, idle_for_s, idle_period_s, note_activity
from wms.core.models import ControlLoop

log = structlog.get_logger(__name__)
_WAKE_TIMEOUT_S = 3
#: A worker that takes a message up later than this does not carry it out.
_WAKE_EXPIRES_S = 10

CycleReport = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loop:
    """Periodic task: its name is also its lock; `run_cycle(now)` returns the report of a cycle.

    One that is `unlocked` runs any number of times side by side: its cycles share the work out
    among themselves. One that `rests` pauses after a cycle as long as the cycle took, however often
    it is woken. A cycle that reports one of `deeds`, all if none is named, keeps the installation
    active; one that `keeps_period` looks at the clock or at other systems, and does so when all is
    idle too. One that `watches` looks at what was done: when it fails, the portal serves
    nevertheless.
    """

    name: str
    task: str
    period_s: float
    run_cycle: Callable[[datetime], CycleReport]
    unlocked: bool = False
    rests: bool = False
    deeds: tuple[str, ...] = ()
    keeps_period: bool = False
    watches: bool = False

    def due_after_s(self, idle_s: float) -> float:
        """Seconds between two turns, in an installation that has been idle for so long."""
        is_idle = idle_s > IDLE_AFTER_S and not self.keeps_period
        return idle_period_s(self.period_s) if is_idle else self.period_s

    def has_done_something(self, report: CycleReport) -> bool:
        """Whether a cycle with this report keeps the installation active."""
        names = self.deeds or tuple(report)
        return not self.keeps_period and any(report.get(name) for name in names)


LOOPS: dict[str, Loop] = {}


def register(loop: Loop) -> Loop:
    """Make the loop known, so that the schedule and the dashboard contain it."""
    LOOPS[loop.name] = loop
    return loop


@functools.cache
def _import_tasks() -> None:
    autodiscover_modules("tasks")


def known_loops() -> Mapping[str, Loop]:
    """All loops by name; a web server, which imports no tasks by itself, learns of them here."""
    _import_tasks()
    return LOOPS


def await_first_turns() -> None:
    """Store a row for each loop that has none: from now on its first turn is awaited."""
    ControlLoop.objects.bulk_create(
        [ControlLoop(name=loop.name, period_s=loop.period_s) for loop in known_loops().values()],
        ignore_conflicts=True,
    )


def run(loop: Loop) -> bool:
    """Run one cycle unless another process is at it, or the loop rests; store its report.

    True when it ran here. An exception of the cycle is stored with the loop and raised again.
    """
    _take_wake_up(loop.task)
    with nullcontext(True) if loop.unlocked else advisory_lock(f"loop:{loop.name}") as is_held:
        if not is_held:
            return False
        now, started = timezone.now(), time.monotonic()
        if loop.rests and _is_resting(loop, now):
            return False
        try:
            report = dict(loop.run_cycle(now))
            if loop.has_done_something(report):
                note_activity()
        except Exception as error:
            _store(loop, now, started, error=f"{type(error).__name__}: {error}")
            raise
        _store(loop, now, started, report=report)
    return True


def last_report(name: str) -> CycleReport:
    """Report of the last cycle of a loop that did not fail; empty before the first."""
    reports = ControlLoop.objects.filter(name=name).values_list("report", flat=True)
    return reports.first() or {}


def _is_resting(loop: Loop, now: datetime) -> bool:
    row = ControlLoop.objects.filter(name=loop.name, started_at__lte=now).first()
    if row is None or row.started_at is None or row.duration_s is None:
        return False
    return now - row.started_at < timedelta(seconds=2 * row.duration_s)


def _store(
    loop: Loop,
    now: datetime,
    started: float,
    *,
    report: dict[str, Any] | None = None,
    error: str = "",
) -> None:
    facts: dict[str, Any] = {
        "period_s": _period_to_come_s(loop),
        "started_at": now,
        "duration_s": time.monotonic() - started,
        "error": error[:2000],
    }
    if report is not None:
        facts["report"] = report
    if error:
        facts["failed_at"] = now
    if not ControlLoop.objects.filter(name=loop.name).update(**facts):
        ControlLoop.objects.get_or_create(name=loop.name, defaults=facts)


def _period_to_come_s(loop: Loop) -> float:
    """Seconds until the next turn at the latest: the installation may have become idle by then."""
    return loop.due_after_s(idle_for_s() + idle_period_s(loop.period_s))


def wake_loop(task: str) -> None:
    """Ask a worker to run a loop soon after an event; see `ask_loop`."""
    if ask_loop(task):
        note_activity()


def ask_loop(task: str) -> bool:
    """Ask a worker to run a loop soon, unless it was asked and has not begun since.

    So a thousand events in a row leave one message, and no loop waits behind the wake-ups of
    another. A mark in the cache tells of the message; it goes when the loop begins, and by itself
    when the message would be dropped: one that is lost delays the next by a period at the most.
    True when the loop was asked now.
    """
    try:
        is_first = cache.add(_mark(task), 1, timeout=_WAKE_EXPIRES_S)
    except (RedisError, OSError) as error:
        log.warning("task_wake_failed", task=task, error=str(error))
        return False
    if is_first:
        wake(task)
    return is_first


def _take_wake_up(task: str) -> None:
    """Remove the mark, so that later events wake the loop again. Without the cache it expires."""
    try:
        cache.delete(_mark(task))
    except (RedisError, OSError) as error:
        log.warning("loop_mark_kept", task=task, error=str(error))


def _mark(task: str) -> str:
    return f"woken:{task}"


def wake(task: str, *arguments: int) -> None:
    """Ask a worker to run a task soon; without a broker its next period does it.

    Waits for a broker that is away or does not answer a few seconds at the most.
    """
    try:
        with _wake_up_pool().acquire(block=True, timeout=_WAKE_TIMEOUT_S) as producer:
            current_app.send_task(task, arguments, producer=producer, expires=_WAKE_EXPIRES_S)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("task_wake_failed", task=task, error=str(error))


@functools.cache
def _wake_up_pool() -> ProducerPool:
    """Pool of connections with a short timeout: those of workers wait for long."""
    connection = current_app.connection_for_write()
    connection.transport_options = {
        **(connection.transport_options or {}),
        "socket_timeout": _WAKE_TIMEOUT_S,
    }
    pool: ProducerPool = producers[connection]
    return pool
