"""Writer of the example's jobs, with attempts and events in the order in which they happened.

`Jobs.write` announces failures for grouping and returns the jobs that wait; `needs_of` tells what
the jobs of each stage need.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from examples.load.accounts_and_sites import ACTOR, Place
from examples.load.copying import NULL, Table, new_ids, plain, stamp
from examples.load.pilots import Runner, Runners
from examples.load.simulation import STAGES, Flow, Life
from matching.task_queues.needs import Needs
from wms.core.models import InboxEntry, User
from wms.dags.lifecycle import JOB_TOPIC
from wms.jobs.lifecycle import FAILURE_TOPIC
from wms.jobs.models import Attempt, Job, JobEvent
from wms.jobs.specs import SharedValues
from wms.jobs.writing.stored_descriptions import ids_by_key
from wms.taskqueues.operations import Entry

#: Of many jobs that fail many fail for the same cause, in other words.
_WHY_FAILED = (
    *("the payload ended with exit code 1",) * 8,
    *("the payload ended with exit code 65: cannot read /data/input/run{n}.root",) * 5,
    *("the payload was killed by signal 9",) * 4,
    "the payload ended with signal 11",
    "output files missing: out.{n}.root",
    "the watchdog stopped it: no progress for {n} s",
    "the watchdog stopped it: memory {n} MB over the limit of 4000 MB",
    "input file https://data.example.org/set{n}/events.root: 404 Not Found",
    "conditions database at db{n}.example.org does not answer after {n} s",
)
_WHY_LOST = (
    "the pilot sent no heartbeat for 60 s after it had stalled",
    "the pilot was ended by its batch system after {n} s",
)
_WHY_HELD = (
    "held by its owner: wrong calibration tag {n}",
    "the expression periodic_hold became true: memory of {n} MB",
)
_WAIT, _RETRY_PAUSE_S = 2.0, 60.0
_EVENT_COLUMNS = (
    "id", "job_id", "event", "from_state", "to_state", "actor", "reason", "facts", "created_at",
)  # fmt: skip
_JOB_COLUMNS = (
    "id", "name", "owner_id", "workspace_id", "state", "state_since", "state_reason",
    "description_id", "own", "max_attempts", "attempt_number", "topic", "topic_key", "cluster_id",
    "process", "not_before", "created_at", "site_name",
)  # fmt: skip
_ATTEMPT_COLUMNS = (
    "job_id", "number", "pilot_id", "site_name", "host", "cores", "memory_mb", "matched_at",
    "started_at", "ended_at", "outcome", "reason", "exit_code", "signal", "wall_s", "cpu_s",
    "max_rss_mb", "stopped_by",
)  # fmt: skip
#: A change of state: event, states before and after, when, why.
_Step = tuple[str, str, str, float, str]


@dataclass(frozen=True)
class Common:
    """Values that all jobs of a DAG share; ids of the DAG and of its workspace."""

    owner: User
    place: Place
    runners: Runners
    dag_id: int
    workspace_id: int
    needs: Sequence[Needs]


class Jobs:
    """Writes jobs with all that belongs to them."""

    def __init__(self, count: int, draw: random.Random, now_s: float) -> None:
        self._draw, self._now_s = draw, now_s
        self._next_id = new_ids(Job, count)
        # Seven events are the most that a job has.
        self._next_event = new_ids(JobEvent, 7 * count)
        self._jobs, self._attempts = Table(Job, *_JOB_COLUMNS), Table(Attempt, *_ATTEMPT_COLUMNS)
        self._events = Table(JobEvent, *_EVENT_COLUMNS)
        self._inbox = Table(InboxEntry, "topic", "key", "kind", "subject_id")
        # Events that are still to come when a job is made; so all are written in their order.
        self._coming: list[tuple[float, int, int, _Step]] = []
        self._turn = itertools.count()
        self._descriptions: dict[Needs, str] = {}

    def write(
        self, lives: Sequence[Life], flows: Sequence[Flow], commons: Sequence[Common]
    ) -> list[Entry]:
        """All jobs; the entries of those that wait."""
        waiting = []
        for life in lives:
            flow, common = flows[life.flow], commons[life.flow]
            job_id, self._next_id = self._next_id, self._next_id + 1
            flow.job_ids[life.place] = job_id
            self._write_events(life.made_s)
            stage = STAGES.index(flow.node_name(life.place).partition("_")[0])
            state = self._one(job_id, life, flow, common, common.needs[stage])
            if state == "waiting":
                waiting.append(Entry(job_id, common.needs[stage]))
        self._write_events(float("inf"))
        for table in (self._jobs, self._attempts, self._events, self._inbox):
            table.flush()
        return waiting

    def _one(self, job_id: int, life: Life, flow: Flow, common: Common, needs: Needs) -> str:
        steps: list[_Step] = [("enqueue", "received", "waiting", life.made_s, "")]
        number = 0
        if life.is_lost:
            number = 1
            self._lose(job_id, life, common, steps)
        if life.outcome == "held":
            why = self._why(_WHY_HELD)
            steps.append(("hold", "waiting", "held", (life.made_s + self._now_s) / 2, why))
        elif life.started_s is not None:
            number += self._try(job_id, number + 1, life, life.started_s, common, steps)
        state, since_s, reason = steps[-1][2:]
        for step in steps:
            heapq.heappush(self._coming, (step[3], next(self._turn), job_id, step))
        self._jobs.add(
            str(job_id), flow.node_name(life.place), str(common.owner.pk), str(common.workspace_id),
            state, stamp(since_s), reason, self._description(needs), _own(life.place), "5",
            str(number), JOB_TOPIC, str(common.dag_id), str(job_id), "0",
            stamp(self._now_s + 600) if state == "received" else NULL, stamp(life.made_s),
            common.place.site.name if number else "",
        )  # fmt: skip
        return state

    def _description(self, needs: Needs) -> str:
        """The id of what jobs with these needs have in common."""
        if needs not in self._descriptions:
            shared = SharedValues.of(
                {
                    "executable": "run.sh",
                    "arguments": ("--events", str(100 * needs.cpu_time_s)),
                    "input_files": ("settings.json",),
                    "needs": needs,
                    "wall_limit_s": 43_200,
                }
            )
            self._descriptions[needs] = str(ids_by_key([shared])[shared.key])
        return self._descriptions[needs]

    def _lose(self, job_id: int, life: Life, common: Common, steps: list[_Step]) -> None:
        """A first attempt whose pilot was lost, before the job went on or still pauses."""
        until_s = self._now_s - 1 if life.started_s is None else life.started_s
        at = [life.made_s + part * (until_s - life.made_s) for part in (0.2, 0.3, 0.8, 0.9)]
        runner = common.runners.at(at[0])
        why = self._why(_WHY_LOST)
        if runner is None:
            raise ValueError(f"no pilot runs at {common.place.site.name} yet")
        steps += [
            ("match", "waiting", "matched", at[0], ""),
            ("start", "matched", "running", at[1], ""),
            ("reschedule", "running", "received", at[2], why),
        ]
        if life.outcome != "received":
            steps.append(("requeue", "received", "waiting", at[3], ""))
        self._attempt(job_id, 1, runner, common, at[:3], "lost", why)

    def _try(
        self, job_id: int, number: int, life: Life, at_s: float, common: Common, steps: list[_Step]
    ) -> bool:
        """The latest attempt: done, failed, or under way. False when there is none."""
        is_open = life.ended_s is None
        runner = common.runners.alive(job_id) if is_open else common.runners.at(at_s)
        if runner is None:
            if is_open:
                # No pilot runs there now: it waits on.
                return False
            raise ValueError(f"no pilot runs at {common.place.site.name} yet")
        steps.append(("match", "waiting", "matched", at_s, ""))
        times = [at_s]
        if life.outcome != "matched":
            steps.append(("start", "matched", "running", at_s + 1, ""))
            times.append(at_s + 1)
        why = ""
        if life.outcome == "stalled":
            steps.append(
                ("stall", "running", "stalled", self._now_s - 1, "the pilot sent no heartbeat")
            )
        if life.ended_s is not None:
            why = self._why(_WHY_FAILED) if life.outcome == "failed" else ""
            event = "fail" if why else "complete"
            steps.append((event, "running", life.outcome, life.ended_s, why))
            times.append(life.ended_s)
        self._attempt(job_id, number, runner, common, times, "" if is_open else life.outcome, why)
        return True

    def _attempt(
        self,
        job_id: int,
        number: int,
        runner: Runner,
        common: Common,
        times: Sequence[float],
        outcome: str,
        why: str,
    ) -> None:
        matched_s, started_s, ended_s = (*times, None, None)[:3]
        wall_s = None if ended_s is None or started_s is None else ended_s - started_s
        is_killed = "signal" in why
        exit_code = NULL if not outcome or is_killed or outcome == "lost" else "1" if why else "0"
        self._attempts.add(
            str(job_id), str(number), str(runner.pk), common.place.site.name, runner.host, "1",
            "2000", stamp(matched_s), stamp(started_s), stamp(ended_s), outcome, why, exit_code,
            "9" if is_killed else NULL, _number(wall_s), _number(wall_s, 0.93),
            _number(None if wall_s is None else 900 + wall_s / 100),
            "watchdog" if "watchdog" in why else "",
        )  # fmt: skip

    def _why(self, reasons: Sequence[str]) -> str:
        return self._draw.choice(reasons).format(n=self._draw.randrange(100, 10_000))

    def _write_events(self, until_s: float) -> None:
        """All that happened before this time and is not yet written."""
        while self._coming and self._coming[0][0] <= until_s:
            at_s, _, job_id, (event, before, after, _, why) = heapq.heappop(self._coming)
            event_id, self._next_event = self._next_event, self._next_event + 1
            self._events.add(
                str(event_id), str(job_id), event, before, after, ACTOR.name, why, "{}", stamp(at_s)
            )
            if event in ("fail", "reschedule", "hold"):
                self._inbox.add(
                    FAILURE_TOPIC, str(job_id), InboxEntry.Kind.JOB_EVENT.value, str(event_id)
                )


def _number(value: float | None, factor: float = 1.0) -> str:
    return NULL if value is None else f"{factor * value:.2f}"


def _own(place: int) -> str:
    """The values by which the job of a node differs from others."""
    return plain(
        {
            "output_files": [f"out.{place}.root"],
            "stdout_name": f"node{place}.out",
            "stderr_name": f"node{place}.err",
        }
    )


def needs_of(owner: User, site: str) -> list[Needs]:
    """Needs of the jobs of each stage of a DAG at a site."""
    sizes = ((500, 2000, 1), (50_000, 4000, 1), (5_000, 4000, 1), (50_000, 8000, 4), (500, 2000, 1))
    return [
        Needs.of(owner.username, cpu_time_s=cpu, memory_mb=memory, cores=cores, sites=[site])
        for cpu, memory, cores in sizes
    ]
