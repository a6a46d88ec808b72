"""Simulated batch system: jobs start first in first out, and end as the behaviour file says.

Also holds and releases jobs, reports provisioners as ready, and traces jobs that others stopped.
"""

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
from wms.dags.services.nodes import mark_provisioned
from wms.dags.simulation.behaviour import US_PER_S, RunResult
from wms.dags.simulation.context import SIMULATION_ACTOR, SimulationContext
from wms.dags.simulation.trace import Run
from wms.dags.states import NodeKind
from wms.jobs import lifecycle
from wms.jobs import operations as jobs
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobState
from wms.taskqueues import operations as taskqueues

_PILOT = Actor.pilot("simulation")
_BATCH = 5000
#: Time after which a held job without a HOLD script is released.
_HOLD_DURATION_US = US_PER_S


@dataclass(frozen=True, slots=True)
class _WaitingJob:
    """A waiting job that starts now, with facts of its node."""

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
class _RunningJob:
    """A running job: its run in the trace, the result it will have, and its attempt number."""

    run: Run
    result: RunResult
    attempt: int


class BatchSystem:
    """Batch system with a limited number of slots; jobs end after their simulated duration."""

    def __init__(self, context: SimulationContext) -> None:
        self._context = context
        self._running: dict[int, _RunningJob] = {}
        self._clusters: dict[int, int] = {}
        self._held: set[int] = set()

    def start_waiting(self) -> int:
        """Start waiting jobs in free slots, first come first served. Returns their number."""
        total, has_more = 0, True
        while has_more:
            free_slots = self._free_slots()
            waiting = self._waiting_jobs(free_slots) if free_slots else []
            if waiting:
                self._start(waiting)
            total += len(waiting)
            has_more = free_slots > 0 and len(waiting) == free_slots
        return total

    def end_due(self, due: Mapping[int, int]) -> None:
        """End jobs whose duration is over; `due` has attempt numbers by job."""
        ended = {
            pk: self._running.pop(pk)
            for pk, attempt in due.items()
            if pk in self._running and self._running[pk].attempt == attempt
        }
        removed = [pk for pk, job in ended.items() if job.result.is_removed]
        with_code = {pk: job for pk, job in ended.items() if not job.result.is_removed}
        for job in ended.values():
            self._context.end(job.run, "removed" if job.result.is_removed else str(job.result.code))
        self._end_with_codes(with_code)
        if removed:
            jobs.kill_jobs(removed, actor=SIMULATION_ACTOR, reason="removed from the queue")

    def note_stopped(self) -> None:
        """Trace the ends of jobs that the engine or a user has ended or held."""
        if not self._running:
            return
        alive = Job.objects.filter(pk__in=list(self._running), state=JobState.RUNNING)
        for pk in self._running.keys() - set(alive.values_list("pk", flat=True)):
            self._context.end(self._running.pop(pk).run, "stopped")

    def release(self, dag_id: int, name: str = "") -> None:
        """Release the held job of a node with the lowest id."""
        clusters = Node.objects.filter(dag_id=dag_id, name=name).values_list("job_id", flat=True)
        held = Job.objects.filter(
            pk__in=self._held, state=JobState.HELD, cluster_id__in=list(clusters)
        )
        first = held.order_by("pk").values_list("pk", flat=True).first()
        if first is not None:
            self._held.discard(first)
            jobs.release_jobs([first], actor=SIMULATION_ACTOR)

    def _free_slots(self) -> int:
        slots = self._context.options.slots
        return max(min(slots - len(self._running), _BATCH), 0) if slots else _BATCH

    def _waiting_jobs(self, limit: int) -> list[_WaitingJob]:
        waiting = jobs_of(*self._context.dag_ids).filter(state=JobState.WAITING)
        found = list(waiting.select_related("description").order_by("pk")[:limit])
        if not found:
            return []
        nodes = self._nodes_by_cluster([job.cluster_id or job.pk for job in found])
        return [
            _WaitingJob(
                job.pk,
                job.cluster_id or job.pk,
                job.process,
                job.attempt_number + 1,
                tuple(job.arguments),
                *nodes[job.cluster_id or job.pk],
            )
            for job in found
        ]

    def _nodes_by_cluster(self, clusters: list[int]) -> dict[int, tuple[int, str, str, str, bool]]:
        rows = Node.objects.filter(dag_id__in=self._context.dag_ids, job_id__in=clusters)
        return {
            job_id: (dag_id, name, category, kind, hold is not None)
            for job_id, dag_id, name, category, kind, hold in rows.values_list(
                "job_id", "dag_id", "name", "category", "kind", "features__scripts__hold"
            )
        }

    def _start(self, waiting: list[_WaitingJob]) -> None:
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
                    matched_at=self._context.now,
                    started_at=self._context.now,
                )
                for job in waiting
            ],
            batch_size=1000,
        )
        lifecycle.apply("start", ids, actor=_PILOT)
        ends: dict[int, dict[int, int]] = defaultdict(dict)
        to_hold, provisioners = [], []
        for job in waiting:
            result, duration_us = self._start_run(job)
            if result.is_held and job.attempt == 1:
                to_hold.append(job)
            elif duration_us is not None:
                ends[self._context.now_us + duration_us][job.pk] = job.attempt
            if job.kind == NodeKind.PROVISIONER and self._reports_ready(job, result):
                provisioners.append(job)
        for at_us, due in ends.items():
            self._context.event_queue.schedule(at_us, partial(self.end_due, due))
        self._hold(to_hold)
        for job in provisioners:
            mark_provisioned(job.dag_id, [job.name], actor=SIMULATION_ACTOR, reason="it says so")

    def _reports_ready(self, job: _WaitingJob, result: RunResult) -> bool:
        behaviour = self._context.behaviour
        return result.is_ready or (behaviour.is_cooperative and job.name not in behaviour.results)

    def _start_run(self, job: _WaitingJob) -> tuple[RunResult, int | None]:
        """Trace the start of a job. Returns its result and duration; None: as long as the DAG."""
        context = self._context
        if job.cluster not in self._clusters:
            self._clusters[job.cluster] = context.trace.next_run_number(job.name, "")
        number = self._clusters[job.cluster]
        run = Run(
            job.name, "", number, job.dag_id, job.process, job.category, job.arguments, is_job=True
        )
        result = context.behaviour.result(job.name, number, job.process)
        self._running[job.pk] = _RunningJob(run, result, job.attempt)
        context.start(run)
        return result, self._duration_us(job, number)

    def _duration_us(self, job: _WaitingJob, number: int) -> int | None:
        behaviour = self._context.behaviour
        is_service = job.kind == NodeKind.SERVICE
        default_s = behaviour.defaults.service_s if is_service else behaviour.defaults.job_s
        is_endless = is_service and behaviour.is_cooperative and job.name not in behaviour.results
        if is_endless and not behaviour.has_duration(job.name, number):
            return None
        return behaviour.duration_us(job.name, "", number, default_s)

    def _hold(self, held: list[_WaitingJob]) -> None:
        if not held:
            return
        ids = [job.pk for job in held]
        for pk in ids:
            self._context.end(self._running.pop(pk).run, "held")
        self._held.update(ids)
        jobs.hold_jobs(ids, actor=SIMULATION_ACTOR, reason="held by the simulation")
        for job in held:
            if self._context.options.releases_held and not job.has_hold_script:
                at_us = self._context.now_us + _HOLD_DURATION_US
                self._context.event_queue.schedule(
                    at_us, partial(self.release, job.dag_id, job.name)
                )

    def _end_with_codes(self, ended: Mapping[int, _RunningJob]) -> None:
        """End attempts and jobs with their exit codes, all jobs of a code at once."""
        by_code: dict[int, list[int]] = defaultdict(list)
        for pk, job in ended.items():
            by_code[job.result.code].append(pk)
        for code, ids in by_code.items():
            self._end_with_code(code, ids)

    def _end_with_code(self, code: int, ids: list[int]) -> None:
        is_done = code == 0
        exit_code, signal = (code, None) if code >= 0 else (None, -code)
        reason = "" if is_done else _reason(code)
        outcome = Attempt.Outcome.DONE if is_done else Attempt.Outcome.FAILED
        Attempt.objects.filter(job_id__in=ids, outcome="").update(
            outcome=outcome,
            reason=reason,
            ended_at=self._context.now,
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
