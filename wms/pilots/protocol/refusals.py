"""Refusals of claims: the reason why a pilot gets no job, and when it makes sense to ask again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from matching.task_queues.resources import Resource
from wms.core.conf import conf

#: A pilot that asked in vain is not made to wait longer than this.
_LONGEST_REST_S = 1.0


class RetryWhen(Enum):
    """Condition for a new look for a job after a refusal."""

    JOBS = "more jobs wait"
    REST = "the pilot has rested"
    OTHER = "something else has changed"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why there is no job, when to retry, and how long the pilot has to wait."""

    reason: str
    until: RetryWhen = RetryWhen.OTHER
    again_s: float = 0.0


def rest_refusal(fruitless_at: datetime | None, now: datetime) -> Refusal | None:
    """Refusal of a claim that comes too soon after one in vain, or None."""
    rest_s = min(_LONGEST_REST_S, conf().agent_poll_s / 2)
    if not rest_s or fruitless_at is None:
        return None
    left_s = (fruitless_at - now).total_seconds() + rest_s
    if left_s <= 0:
        return None
    reason = f"it asked in vain a moment ago: it may ask again {rest_s:g} s after that"
    return Refusal(reason, RetryWhen.REST, left_s)


def no_fit_refusal(free: Resource, host: str) -> Refusal:
    """Refusal as no waiting job fits; jobs that have failed on `host` are left to others."""
    reason = (
        f"no waiting job fits what a pilot of {free.queue} has free: cores {free.cores}, memory "
        f"{free.memory_mb} MB, GPUs {free.gpus}, time {free.cpu_time_s} s"
    )
    if free.excluded:
        reached = ", ".join(dict.fromkeys(map(str, free.excluded)))
        reason += f"; running limits let no more of these start: {reached}"
    if host:
        reason += f"; jobs that have failed on {host} wait for other worker nodes"
    return Refusal(reason, RetryWhen.OTHER if free.excluded or host else RetryWhen.JOBS)
