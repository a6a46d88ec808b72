"""The scripted batch system: jobs start in their order, and end as the behaviour says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from wms.core.actors import Actor
from wms.core.statemachine import Increment
from wms.dags.models import Node
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.services.nodes import tell_provisioned
from wms.dags.simulation.behaviour import US_PER_S, Result
from wms.dags.simulation.record import Run
from wms.dags.simulation.world import STEERING, World
from wms.dags.states import NodeKind
from wms.jobs import lifecycle
from wms.jobs import operations as jobs
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobState
from wms.taskqueues import operations as taskqueues

_PILOT = Actor.pilot("simulation")
_BATCH = 5000
#: So long a job is held that no HOLD script is run for.
_HELD_US = US_PER_S


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A job that is about to start, with what its node is."""

    pk: int
    cluster: int
    process: int
    attempt: int
    arguments: tuple[str, ...]
    dag_id: int
    name: str
    category: str
    kind: str
    has_hold_script: bool


@dataclass(slots=True)
class _Started:
    """A job that runs: its run, how it is going to end, and which start of it this is."""

    run: Run
    result: Result
    attempt: int


class BatchSystem:
    """Starts what waits, as many at once as there are slots; ends it when its time is up."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: dict[int, _Started] = {}
        self._clusters: dict[int, int] = {}
        self._held: set[int] = set()

    def start_waiting(self) -> int:
        """Start the jobs that wait, first come first served. Returns how many."""
        total, has_more = 0, True
        while has_more:
            room = self._room()
            found = self._waiting(room) if room else []
            if found:
                self._start(found)
            total += len(found)
            has_more = room > 0 and len(found) == room
        return total

    def end_due(self, due: Mapping[int, int]) -> None:
        """End jobs whose time is up, given with the number of their attempt."""
        ended = {
            pk: self._running.pop(pk)
            for pk, attempt in due.items()
            if pk in self._running and self._running[pk].attempt == attempt
        }
        removed = [pk for pk, each in ended.items() if each.result.is_removed]
        with_code = {pk: each for pk, each in ended.items() if pk not in set(removed)}
        for pk, each in ended.items():
            self._world.end(each.run, "removed" if pk in set(removed) else str(each.result.code))
        self._close(with_code)
        if removed:
            jobs.kill_jobs(removed, actor=STEERING, reason="removed from the queue")

    def note_stopped(self) -> None:
        """Record the ends of jobs that others have ended, or held."""
        if not self._running:
            return
        alive = Job.objects.filter(pk__in=list(self._running), state=JobState.RUNNING)
        for pk in self._running.keys() - set(alive.values_list("pk", flat=True)):
            self._world.end(self._running.pop(pk).run, "stopped")

    def release(self, dag_id: int, name: str = "") -> None:
        """Release the job of a node that was held longest."""
        clusters = Node.objects.filter(dag_id=dag_id, name=name).values_list("job_id", flat=True)
        held = Job.objects.filter(
            pk__in=self._held, state=JobState.HELD, cluster_id__in=list(clusters)
        )
        first = held.order_by("pk").values_list("pk", flat=True).first()
        if first is not None:
            self._held.discard(first)
            jobs.release_jobs([first], actor=STEERING)

    def _room(self) -> int:
        slots = self._world.options.slots
        return max(min(slots - len(self._running), _BATCH), 0) if slots else _BATCH

    def _waiting(self, room: int) -> list[_Waiting]:
        rows = list(
            jobs_of(*self._world.dag_ids)
            .filter(state=JobState.WAITING)
            .order_by("pk")
            .values_list("pk", "cluster_id", "process", "attempt_number", "arguments")[:room]
        )
        if not rows:
            return []
        nodes = self._nodes([cluster or pk for pk, cluster, *_ in rows])
        return [
            _Waiting(pk, cluster or pk, process, number + 1, tuple(words), *nodes[cluster or pk])
            for pk, cluster, process, number, words in rows
        ]

    def _nodes(self, clusters: list[int]) -> dict[int, tuple[int, str, str, str, bool]]:
        rows = Node.objects.filter(dag_id__in=self._world.dag_ids, job_id__in=clusters)
        return {
            job_id: (dag_id, name, category, kind, hold is not None)
            for job_id, dag_id, name, category, kind, hold in rows.values_list(
                "job_id", "dag_id", "name", "category", "kind", "features__scripts__hold"
            )
        }

    def _start(self, waiting: list[_Waiting]) -> None:
        ids = [job.pk for job in waiting]
        taskqueues.withdraw(ids)
        lifecycle.apply(
            "match",
            ids,
            actor=_PILOT,
            attempt_number=Increment(),
            site_name="simulation",
        )
        Attempt.objects.bulk_create(
            [
                Attempt(
                    job_id=job.pk,
                    number=job.attempt,
                    pilot_id=0,
                    site_name="simulation",
                    matched_at=self._world.now,
                    started_at=self._world.now,
                )
                for job in waiting
            ],
            batch_size=1000,
        )
        lifecycle.apply("start", ids, actor=_PILOT)
        ends: dict[int, dict[int, int]] = defaultdict(dict)
        to_hold, provisioners = [], []
        for job in waiting:
            started, lasts_us = self._begin(job)
            if started.result.is_held and job.attempt == 1:
                to_hold.append(job)
            elif lasts_us is not None:
                ends[self._world.now_us + lasts_us][job.pk] = job.attempt
            if job.kind == NodeKind.PROVISIONER and self._says_ready(job, started.result):
                provisioners.append(job)
        for at_us, due in ends.items():
            self._world.agenda.plan(at_us, partial(self.end_due, due))
        self._hold(to_hold)
        for job in provisioners:
            tell_provisioned(job.dag_id, [job.name], actor=STEERING, reason="it says so")

    def _says_ready(self, job: _Waiting, result: Result) -> bool:
        behaviour = self._world.behaviour
        return result.is_ready or (behaviour.is_obliging and job.name not in behaviour.results)

    def _begin(self, job: _Waiting) -> tuple[_Started, int | None]:
        """Record the start of a job; how long it lasts, None for as long as the DAG."""
        world = self._world
        if job.cluster not in self._clusters:
            self._clusters[job.cluster] = world.record.next_number(job.name, "")
        number = self._clusters[job.cluster]
        run = Run(
            job.name, "", number, job.dag_id, job.process, job.category, job.arguments, is_job=True
        )
        result = world.behaviour.result(job.name, number, job.process)
        started = self._running[job.pk] = _Started(run, result, job.attempt)
        world.start(run)
        return started, self._duration_us(job, number)

    def _duration_us(self, job: _Waiting, number: int) -> int | None:
        behaviour = self._world.behaviour
        is_service = job.kind == NodeKind.SERVICE
        usual_s = behaviour.usual.service_s if is_service else behaviour.usual.job_s
        is_endless = is_service and behaviour.is_obliging and job.name not in behaviour.results
        if is_endless and not behaviour.says_how_long(job.name, number):
            return None
        return behaviour.duration_us(job.name, "", number, usual_s)

    def _hold(self, held: list[_Waiting]) -> None:
        if not held:
            return
        ids = [job.pk for job in held]
        for pk in ids:
            self._world.end(self._running.pop(pk).run, "held")
        self._held.update(ids)
        jobs.hold_jobs(ids, actor=STEERING, reason="held by the simulation")
        for job in held:
            if self._world.options.releases_held and not job.has_hold_script:
                at_us = self._world.now_us + _HELD_US
                self._world.agenda.plan(at_us, partial(self.release, job.dag_id, job.name))

    def _close(self, ended: Mapping[int, _Started]) -> None:
        """End attempts and jobs with their codes; equal ends in the same statements."""
        by_code: dict[int, list[int]] = defaultdict(list)
        for pk, each in ended.items():
            by_code[each.result.code].append(pk)
        for code, ids in by_code.items():
            self._close_equal(code, ids)

    def _close_equal(self, code: int, ids: list[int]) -> None:
        is_done = code == 0
        exit_code, signal = (code, None) if code >= 0 else (None, -code)
        reason = "" if is_done else _reason(code)
        outcome = Attempt.Outcome.DONE if is_done else Attempt.Outcome.FAILED
        Attempt.objects.filter(job_id__in=ids, outcome="").update(
            outcome=outcome,
            reason=reason,
            ended_at=self._world.now,
            exit_code=exit_code,
            signal=signal,
        )
        fact: dict[str, Any] = {"exit_code": code} if code >= 0 else {"signal": -code}
        lifecycle.apply(
            "complete" if is_done else "fail",
            ids,
            actor=_PILOT,
            reason=reason,
            facts=dict.fromkeys(ids, fact),
        )


def _reason(code: int) -> str:
    if code < 0:
        return f"the payload was ended by signal {-code}"
    return f"the payload ended with exit code {code}"
