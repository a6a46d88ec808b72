"""Why a pilot that asks is given no job, and what it can wait for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from matching.resources import Resource
from wms.core.conf import conf

#: A pilot that asked in vain is not made to wait longer than this.
_LONGEST_REST_S = 1.0


class Until(Enum):
    """What has to be before there can be a job for the pilot."""

    JOBS = "more jobs wait"
    REST = "the pilot has rested"
    OTHER = "something else has changed"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no job, until when, and how long the pilot has to rest."""

    reason: str
    until: Until = Until.OTHER
    again_s: float = 0.0


def must_rest(fruitless_at: datetime | None, now: datetime) -> Refusal | None:
    """The answer to a pilot that asks too soon after it asked in vain."""
    rest_s = min(_LONGEST_REST_S, conf().agent_poll_s / 2)
    if not rest_s or fruitless_at is None:
        return None
    left_s = (fruitless_at - now).total_seconds() + rest_s
    if left_s <= 0:
        return None
    reason = f"it asked in vain a moment ago: it may ask again {rest_s:g} s after that"
    return Refusal(reason, Until.REST, left_s)


def none_fits(free: Resource, host: str) -> Refusal:
    """No waiting job fits what is free; jobs that have failed on `host` are left to others."""
    reason = (
        f"no waiting job fits what a pilot of {free.queue} has free: cores {free.cores}, memory "
        f"{free.memory_mb} MB, GPUs {free.gpus}, time {free.cpu_time_s} s"
    )
    if free.excluded:
        reached = ", ".join(dict.fromkeys(map(str, free.excluded)))
        reason += f"; running limits let no more of these start: {reached}"
    if host:
        reason += f"; jobs that have failed on {host} wait for other worker nodes"
    return Refusal(reason, Until.OTHER if free.excluded or host else Until.JOBS)
