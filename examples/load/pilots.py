"""Writer of the example's pilots with their events: at any time some run at each site.

`Fleet.write` returns the `Runners` of each site, which tell the pilot that ran a job at a time.
"""

from __future__ import annotations

import hashlib
import random
import uuid
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from examples.load.accounts_and_sites import ACTOR, Place
from examples.load.copying import Table, new_ids, plain, stamp
from examples.load.scale import Scale
from wms.core.models import InboxEntry
from wms.pilots.lifecycle import FAILURE_TOPIC
from wms.pilots.models import Pilot, PilotEvent

_HOUR_S = 3600.0
#: What runs longer than any attempt: the pilot that began last before an attempt outlives it.
_SHORTEST_S, _LONGEST_S = 24 * _HOUR_S, 36 * _HOUR_S
_SECRET = hashlib.sha256(b"nobody has it").hexdigest()
_WHY_FAILED = (
    "no heartbeat for 60 s after it had stalled",
    "the node failed the check disk: {n} MB are free in /tmp/pilot-{n}, 10000 are needed",
    "the batch system ended it: memory limit of {n} MB exceeded",
)
_WHY_ABORTED = (
    "sbatch: error: Batch job submission failed: Invalid account or account/partition",
    "the batch system lost it: job {n} is unknown",
)
_COLUMNS = (
    "id", "uuid", "queue_id", "state", "state_since", "state_reason", "batch", "native_id",
    "secret_sha256", "token_sha256", "node", "missing_polls", "is_forgotten", "created_at",
    "registered_at", "heartbeat_at", "ended_at",
)  # fmt: skip
_EVENT_COLUMNS = (
    "id", "pilot_id", "event", "from_state", "to_state", "actor", "reason", "facts", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class Runner:
    """A pilot that takes jobs, from a time on."""

    pk: int
    host: str
    is_alive: bool


@dataclass
class Runners:
    """The pilots of a site that take jobs, in the order in which they began."""

    begins: list[float] = field(default_factory=list)
    pilots: list[Runner] = field(default_factory=list)

    def at(self, time_s: float) -> Runner | None:
        """The one that began last before this time."""
        place = bisect_right(self.begins, time_s)
        return self.pilots[place - 1] if place else None

    def alive(self, number: int) -> Runner | None:
        """One of those that run now, another one for each number."""
        running = [pilot for pilot in self.pilots[-40:] if pilot.is_alive]
        return running[number % len(running)] if running else None


class Fleet:
    """Writes all pilots, in the order in which they were made."""

    def __init__(self, scale: Scale, draw: random.Random, now_s: float) -> None:
        self._scale, self._draw, self._now_s = scale, draw, now_s
        self._pilots = Table(Pilot, *_COLUMNS)
        self._events = Table(PilotEvent, *_EVENT_COLUMNS)
        self._inbox = Table(InboxEntry, "topic", "key", "kind", "subject_id")
        self._next = new_ids(Pilot, scale.pilots)
        # Five events are the most that a pilot has.
        self._next_event = new_ids(PilotEvent, 5 * scale.pilots)

    def write(self, places: Sequence[Place]) -> list[Runners]:
        """All pilots; those of each place that take jobs."""
        runners = [Runners() for _ in places]
        for number in range(self._scale.pilots):
            begun_s = self._now_s - self._scale.seconds * (1 - number / self._scale.pilots)
            place = number % len(places)
            self._one(places[place], runners[place], begun_s - _HOUR_S)
        for table in (self._pilots, self._events, self._inbox):
            table.flush()
        return runners

    def _one(self, place: Place, runners: Runners, made_s: float) -> None:
        draw, now_s = self._draw, self._now_s
        pk, self._next = self._next, self._next + 1
        registered_s = made_s + draw.uniform(60, _HOUR_S)
        ends_s = registered_s + draw.uniform(_SHORTEST_S, _LONGEST_S)
        luck = draw.random()
        steps = [("queue", "submitted", "queued", made_s + 5, "")]
        if luck < 0.04:
            why = self._why(_WHY_ABORTED)
            steps.append(("abort", "queued", "aborted", registered_s, why))
        elif registered_s < now_s - 30 and not (luck < 0.08 and now_s - made_s < 4 * _HOUR_S):
            steps.append(("register", "queued", "running", registered_s, ""))
            if luck < 0.10:
                # It fails before it has had a job.
                steps.append(
                    ("fail", "running", "failed", registered_s + 90, self._why(_WHY_FAILED))
                )
            elif ends_s < now_s:
                steps.append(("end", "running", "done", ends_s, ""))
            elif luck < 0.11:
                steps.append(("stall", "running", "stalled", now_s - 40, "no heartbeat for 30 s"))
        self._write(pk, place, made_s, [step for step in steps if step[3] < now_s], runners)

    def _why(self, reasons: Sequence[str]) -> str:
        return self._draw.choice(reasons).format(n=self._draw.randrange(1000, 100_000))

    def _write(
        self,
        pk: int,
        place: Place,
        made_s: float,
        steps: Sequence[tuple[str, str, str, float, str]],
        runners: Runners,
    ) -> None:
        for event, before, after, at_s, reason in steps:
            event_id, self._next_event = self._next_event, self._next_event + 1
            self._events.add(
                str(event_id), str(pk), event, before, after, ACTOR.name, reason, "{}", stamp(at_s)
            )
            if event in ("abort", "fail"):
                self._inbox.add(
                    FAILURE_TOPIC, str(pk), InboxEntry.Kind.PILOT_EVENT.value, str(event_id)
                )
        state = steps[-1][2] if steps else "submitted"
        times = {step[0]: step[3] for step in steps}
        registered_s = times.get("register")
        ended_s = next((times[name] for name in ("end", "fail", "abort") if name in times), None)
        host = f"node{self._draw.randrange(1, 400):03d}.{place.site.name.lower()}.example.org"
        heartbeat_s = None if registered_s is None else (ended_s or self._now_s - 2)
        self._pilots.add(
            str(pk), str(uuid.UUID(int=self._draw.getrandbits(128))),
            str(self._draw.choice(place.queues).pk), state,
            stamp(steps[-1][3] if steps else made_s), steps[-1][4] if steps else "",
            f"example-{pk}", str(100_000 + pk), _SECRET, _SECRET if registered_s else "",
            plain({"hostname": host, "cores": 8} if registered_s else {}),
            "0", "t" if ended_s else "f", stamp(made_s), stamp(registered_s), stamp(heartbeat_s),
            stamp(ended_s),
        )  # fmt: skip
        if registered_s is not None and state in ("running", "done", "stalled"):
            runners.begins.append(registered_s)
            runners.pilots.append(Runner(pk, host, state == "running"))
