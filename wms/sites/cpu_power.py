"""CPU power of a queue's pilots: that of one core, 1.0 being the core that CPU times are told for.

A job's CPU time is work: seconds on a core of power 1.0, each core of several doing as much. So a
pilot takes it where the wall time that it has left, times its power, is at least that (DIRAC:
"CPU work left", in HS06 seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wms.sites.models import Queue

#: Built-in check that measures the power, and the attribute that it publishes.
BENCHMARK = "benchmark"
POWER = "CpuPower"
#: A node tells at most so many times the power of its queue, and at least this part of it: it is
#: not trusted to draw jobs of any length.
MOST_FACTOR = 4.0


def power_fault(power: float, queue: Queue) -> str:
    """Reason why a measured power is not believed at this queue; empty when it is."""
    least, most = queue.cpu_power / MOST_FACTOR, queue.cpu_power * MOST_FACTOR
    # So that what is no number at all is refused too.
    if least <= power <= most:
        return ""
    return (
        f"{POWER} is {power:g}; of a queue of power {queue.cpu_power:g} it must be from {least:g} "
        f"to {most:g}"
    )


def power_of(queue: Queue, published: Mapping[str, Mapping[str, Any]]) -> float:
    """Power of a pilot: as its node has measured it, else as its queue is configured.

    What is not believed any more, because the queue has changed, does not count.
    """
    power = published.get(BENCHMARK, {}).get(POWER)
    if not isinstance(power, int | float) or power_fault(power, queue):
        return queue.cpu_power
    return float(power)
