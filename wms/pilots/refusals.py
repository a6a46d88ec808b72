"""Why a pilot that asks is given no job."""

from __future__ import annotations

from datetime import datetime, timedelta

from matching.resources import Resource
from wms.core.conf import conf

#: A pilot that asked in vain is not made to wait longer than this.
_LONGEST_REST_S = 1.0


def must_rest(fruitless_at: datetime | None, now: datetime) -> str:
    """Why a pilot asks too soon after it asked in vain."""
    rest_s = min(_LONGEST_REST_S, conf().agent_poll_s / 2)
    if not rest_s or fruitless_at is None or now >= fruitless_at + timedelta(seconds=rest_s):
        return ""
    return f"it asked in vain a moment ago: it may ask again {rest_s:g} s after that"


def why_none(free: Resource, host: str) -> str:
    """What no waiting job fits, and on which host jobs have failed that are left to others."""
    reason = (
        f"no waiting job fits what a pilot of {free.queue} has free: cores {free.cores}, memory "
        f"{free.memory_mb} MB, GPUs {free.gpus}, time {free.cpu_time_s} s"
    )
    if free.excluded:
        reached = ", ".join(dict.fromkeys(map(str, free.excluded)))
        reason += f"; running limits let no more of these start: {reached}"
    if host:
        reason += f"; jobs that have failed on {host} wait for other worker nodes"
    return reason
