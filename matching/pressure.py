"""How many pilots to send to a queue: a steady, bounded pressure."""

from __future__ import annotations

from dataclasses import dataclass

#: A batch system takes so many pilots well within the time that it is given to answer.
MAX_BATCH = 200


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """One queue at one moment. `waiting_jobs` are those that its pilots could run."""

    is_enabled: bool
    waiting_jobs: int
    pending_pilots: int
    idle_pilots: int
    alive_pilots: int
    max_pilots: int
    max_queued_pilots: int
    free_slots: int


@dataclass(frozen=True, slots=True)
class PressureDecision:
    """How many pilots to submit now; `reason` names what set the number."""

    submit: int
    reason: str


def decide_pressure(queue: QueueSnapshot) -> PressureDecision:
    """The number of pilots to submit: one for each waiting job that no pilot is free for.

    Pilots that have not called in yet, and those that are idle, will take a job each; the rest is
    bounded by the queue's limits and by what the batch system can take.
    """
    if not queue.is_enabled:
        return PressureDecision(0, "the queue or its site is switched off")
    if queue.waiting_jobs == 0:
        return PressureDecision(0, "no waiting job fits this queue")
    limits = {
        "jobs that no pilot is free for": queue.waiting_jobs
        - queue.pending_pilots
        - queue.idle_pilots,
        f"at most {queue.max_pilots} pilots": queue.max_pilots - queue.alive_pilots,
        f"at most {queue.max_queued_pilots} queued pilots": queue.max_queued_pilots
        - queue.pending_pilots,
        "free slots of the batch system": queue.free_slots,
        f"at most {MAX_BATCH} pilots at once": MAX_BATCH,
    }
    reason, smallest = min(limits.items(), key=lambda limit: limit[1])
    return PressureDecision(max(0, smallest), reason)
