"""Fault isolation: a fault of one queue's batch system does not stop the work for other queues.

Also the back-off from a batch system that uses up a task's time, the clock of a queue's turn, and
the lock of a queue.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from wms.elements.protocol import ElementError
from wms.pilots.pressure.backoff import Kind, note_failure
from wms.sites.models import Queue

log = structlog.get_logger(__name__)


def queue_lock(queue_id: int) -> str:
    """Name of the lock for calls to a queue's batch system."""
    return f"queue:{queue_id}"


@dataclass(slots=True)
class TurnClock:
    """Clock of a turn that began at `start`: a batch system may need minutes to answer."""

    start: datetime
    clock: Callable[[], float] = time.monotonic
    _began_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_s = self.clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the turn began."""
        return self.clock() - self._began_s

    @property
    def now(self) -> datetime:
        """Current time: pauses begin here, not where the turn began."""
        return self.start + timedelta(seconds=self.elapsed_s)


@dataclass(slots=True)
class TurnOutcome:
    """Outcome of the block: `fault` says in words what went wrong, or is empty."""

    fault: str = ""


@contextmanager
def faults_contained(event: str, queue: Queue) -> Iterator[TurnOutcome]:
    """Keep what a block does for one queue from stopping the whole loop.

    A batch system's own refusal is logged as a line, a mistake of ours with its traceback. The end
    of the task's time is no fault of the queue and goes through.
    """
    outcome = TurnOutcome()
    try:
        yield outcome
    except SoftTimeLimitExceeded:
        raise
    except ElementError as error:
        log.warning(event, queue=str(queue), error=str(error))
        outcome.fault = str(error)
    except Exception as error:
        log.exception(event, queue=str(queue))
        outcome.fault = f"{type(error).__name__}: {error}"


@contextmanager
def task_timeout_noted(
    queue: Queue, kind: Kind, watch: TurnClock, credential_id: int | None = None
) -> Iterator[None]:
    """Back off from a batch system with which the time of a whole task has run out.

    Nobody else would note it, and the next cycle would lose the same time again.
    """
    try:
        yield
    except SoftTimeLimitExceeded:
        reason = f"not done within {watch.elapsed_s:.0f} s"
        jitter = random.uniform(-1, 1)
        note_failure(queue, kind, reason, now=watch.now, jitter=jitter, credential_id=credential_id)
        raise
