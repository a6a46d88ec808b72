"""Benchmark of job claims, with up to ten million waiting jobs in a hundred thousand TaskQueues.

Each claim is one transaction: draw a TaskQueue, draw a job, take it out, commit, the disk waited
for. Pilots of all kinds ask, at many sites (`benchmarks.tq_workload`). Every answer is checked
against the workload's own rule: no illegal match (`illegal`), and nobody is told that there is
nothing while a job that fits is waiting (`missed`), also after half of the jobs were drained.
Clients are processes with a connection each; the loop of the priorities runs beside them, as in an
installation. `busy` is one client while jobs are submitted and priorities recomputed all the time.
`waits` is what the sessions of eight clients were seen doing: waiting for the processor or for an
event of the database, or for their client to compute.
`submit_s`, `recompute_s` and `plans` are the times to put jobs into TaskQueues and to recompute
priorities, and the costs of the claim's statements. `claim_of_pilot` is the whole claim of a pilot,
with its attempt and events. `reference` is a read of one row and a transaction of one row in the
same run, to compare machines by.
"""

from __future__ import annotations

import json
import statistics
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import base
from benchmarks.claim_load import (
    CHUNK,
    Answer,
    Meanwhile,
    Size,
    chunks,
    claims,
    claims_of_many,
    fill,
    grown,
    grown_index,
    keep_house,
    recompute_on,
    resource_of,
    submit_on,
)
from benchmarks.tq_workload import Pilot, Workload, matches

FULL = (
    # The eight take nearly half of all jobs: many TaskQueues are emptied by claims.
    Size(100_000, 1_000, 3000, 44_000),
    Size(1_000_000, 10_000, 3000, 8000),
    Size(10_000_000, 100_000, 3000, 4000),
)
QUICK = (Size(4_000, 200, 200, 400),)


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure all sizes, one after another, each in a database filled anew."""
    base.load_django()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    found: dict[str, Any] = {"scenarios": [], "submit_s": {}, "recompute_s": {}, "plans": {}}
    for size in QUICK if is_quick else FULL:
        _measure_size(size, found)
    jobs = _measure_jobs(*((1_000, 50) if is_quick else (100_000, 1_000)))
    found["submit_s"]["submit_jobs"] = jobs["submit_s"]
    found["claim_of_pilot"] = jobs["claim_of_pilot"]
    found["reference"] = base.reference_ms()
    return found


def _measure_size(size: Size, found: dict[str, Any]) -> None:
    workload = Workload(size.jobs, size.task_queues)
    found["submit_s"][f"enqueue {CHUNK} of {size.jobs}"] = fill(workload)
    found["recompute_s"][size.task_queues] = _recompute_s(runs=3)
    found["plans"][size.task_queues] = _plans(workload)
    table = _Table(workload, grown(size))
    scenarios = found["scenarios"]
    table.judge(claims(workload, 200, "warm"))
    with Meanwhile(size, keep_house):
        alone = claims(workload, size.claims, "alone")
    scenarios.append(_row(size, 1, alone, table))
    with Meanwhile(size, submit_on, recompute_on):
        busy = claims(workload, size.claims, "busy")
    scenarios.append({"load": "busy", **_row(size, 1, busy, table)})
    table.forget_order()
    with Meanwhile(size, keep_house):
        answers, took_s, waits = claims_of_many(workload, 8, size.claims_of_eight // 8)
    scenarios.append({**_row(size, 8, answers, table, took_s=took_s), "waits": waits})
    _drain(workload)
    table.read()
    with Meanwhile(size, keep_house):
        # Until the loop has heard of what went; a small run is only to see that it works.
        time.sleep(7 if size.jobs >= CHUNK else 0)
        drained = claims(workload, 600, "drained")
    scenarios.append({"load": "half drained", **_row(size, 1, drained, table)})
    table.check_nothing_is_lost()


class _Table:
    """Which jobs wait, as the workload knows it: to check answers by."""

    def __init__(self, workload: Workload, grown: Workload) -> None:
        self._groups = workload.groups
        # The first of these are the workload's own.
        self._task_queues = grown.task_queues
        self._queue_of = array("i", (index for _, index, _, _ in workload.job_rows()))
        self._left = Counter(self._queue_of)
        self._given: set[int] = set()
        self._is_reread = False
        self._knows_order = True

    def forget_order(self) -> None:
        """From now on answers come from several clients: nobody knows what waited when."""
        self._knows_order = False

    def read(self) -> None:
        """Learn from the database what waits now."""
        from wms.taskqueues.models import WaitingJob

        ids = WaitingJob.objects.values_list("job_id", flat=True)
        self._left = Counter(self._index(job_id) for job_id in ids.iterator(chunk_size=50_000))
        self._knows_order = self._is_reread = True

    def check_nothing_is_lost(self) -> None:
        """No job that was given waits still, and the count agrees with the rows."""
        from django.db.models import Sum

        from wms.taskqueues.models import Tally, TaskQueue, WaitingJob

        waiting = WaitingJob.objects.count()
        # Entries of TaskQueues that have gone wait for the sweeper.
        tallies = Tally.objects.filter(task_queue_id__in=TaskQueue.objects.values("pk"))
        if waiting != tallies.aggregate(jobs=Sum("jobs"))["jobs"]:
            raise SystemExit("the count of waiting jobs is wrong")
        if WaitingJob.objects.filter(job_id__in=list(self._given)).exists():
            raise SystemExit("a job that was given waits still")

    def judge(self, answers: Iterable[Answer]) -> tuple[int, int]:
        """How many of the matches are illegal, a second one of a job included, or were missed."""
        illegal = missed = 0
        for answer in answers:
            if answer.job_id is None:
                missed += self._knows_order and self._is_any_left(answer.pilot)
            else:
                index = self._index(answer.job_id)
                is_first = answer.job_id not in self._given
                illegal += not (is_first and self._is_legal(index, answer.pilot))
                self._given.add(answer.job_id)
                # What others have submitted meanwhile was not counted as waiting.
                self._left[index] -= self._is_own(answer.job_id)
        return illegal, missed

    def _is_own(self, job_id: int) -> bool:
        return self._is_reread or job_id <= len(self._queue_of)

    def _index(self, job_id: int) -> int:
        if job_id <= len(self._queue_of):
            return self._queue_of[job_id - 1]
        return grown_index(job_id, len(self._task_queues))

    def _is_legal(self, index: int, pilot: Pilot) -> bool:
        return matches(self._task_queues[index], pilot, self._groups)

    def _is_any_left(self, pilot: Pilot) -> bool:
        return any(self._is_legal(index, pilot) for index, left in self._left.items() if left > 0)


def _row(
    size: Size, clients: int, answers: Sequence[Answer], table: _Table, *, took_s: float = 0.0
) -> dict[str, Any]:
    times_ms = sorted(1000 * answer.took_s for answer in answers)
    illegal, missed = table.judge(answers)
    return {
        "jobs": size.jobs,
        "task_queues": size.task_queues,
        "clients": clients,
        "claims": len(answers),
        "given": sum(answer.job_id is not None for answer in answers),
        "median_ms": round(statistics.median(times_ms), 2),
        "p95_ms": round(times_ms[int(len(times_ms) * 0.95)], 2),
        "p99_ms": round(times_ms[int(len(times_ms) * 0.99)], 2),
        "claims_per_s": round(len(answers) / (took_s or sum(times_ms) / 1000), 1),
        "illegal": illegal,
        "missed": missed,
    }


def _drain(workload: Workload) -> None:
    """Take all jobs out of every second TaskQueue: what is empty must be no candidate any more."""
    from wms.taskqueues.operations import withdraw

    ids = (job_id for job_id, index, _, _ in workload.job_rows() if index % 2)
    for chunk in chunks(ids, CHUNK):
        withdraw(chunk)


def _recompute_s(runs: int) -> float:
    from wms.taskqueues.models import Ticket
    from wms.taskqueues.priorities import recompute

    times_s = []
    for _ in range(runs):
        # So that every row has changed.
        Ticket.objects.update(priority=1)
        began = time.perf_counter()
        recompute()
        times_s.append(time.perf_counter() - began)
    return round(statistics.median(times_s), 3)


def _plans(workload: Workload) -> dict[str, Any]:
    """Time and buffers of the statements of a claim, for a usual pilot: medians of 51.

    Planned for its values each time; those of a real claim are planned once in a session.
    """
    from django.db import connection, transaction

    from wms.taskqueues import waiting
    from wms.taskqueues.draws import draw, sql

    found: dict[str, Any] = {}
    pilots = [p for p in workload.mixed_pilots(120, "plans") if p["kind"] == "generic_1core"][:51]
    for name in ("sample", "scan", "take"):
        plans = []
        for pilot in pilots:
            resource = resource_of(pilot, workload.groups)
            drawn = draw.Draw(resource)
            candidate = drawn.next()
            if candidate is None:
                continue
            statement, parameters = draw.explained(name, resource, candidate.needs.cpu_time_s)
            if name == "take":
                statement = sql.TAKE_BY[drawn.law]
                parameters = {
                    "task_queue": candidate.task_queue_id,
                    **waiting.ANYONE.parameters(),
                }
            # Taken back: the jobs of the plans are still to be claimed.
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
                plans.append(cursor.fetchone()[0])
                transaction.set_rollback(True)
        found[name] = _plan_figures(plans)
    return found


def _plan_figures(plans: list[Any]) -> dict[str, float]:
    tops = [(json.loads(plan) if isinstance(plan, str) else plan)[0] for plan in plans]
    return {
        "planning_ms": round(statistics.median(top["Planning Time"] for top in tops), 3),
        "execution_ms": round(statistics.median(top["Execution Time"] for top in tops), 3),
        "buffers": statistics.median(top["Plan"]["Shared Hit Blocks"] for top in tops),
    }


def _measure_jobs(count: int, claims_of_pilots: int) -> dict[str, Any]:
    """Real jobs: seconds to submit so many in one call, and the whole claim of pilots for some."""
    from matching.task_queues.needs import Needs
    from wms.core.actors import Actor
    from wms.core.models import User
    from wms.jobs.operations import JobSpec, create_workspace, submit_jobs

    owner, _ = User.objects.get_or_create(username="submitter")
    specs = [
        JobSpec(
            name=f"job{number}",
            executable="/bin/true",
            arguments=(str(number),),
            # Longer than all others, so that these are the ones that are claimed.
            needs=Needs.of("submitter", memory_mb=number % 20, cpu_time_s=2 * 10**6,
                           segments_s=[2 * 10**6]),
        )
        for number in range(count)
    ]  # fmt: skip
    workspace = create_workspace(owner, {})
    began = time.perf_counter()
    submit_jobs(specs, owner=owner, workspace=workspace, actor=Actor.system("benchmark"))
    took_s = time.perf_counter() - began
    return {"submit_s": round(took_s, 2), "claim_of_pilot": _claims_of_pilots(claims_of_pilots)}


def _claims_of_pilots(count: int) -> dict[str, float]:
    """A pilot row for each claim; what the pilot API does for one, apart from HTTP."""
    from django.utils import timezone

    from matching.task_queues.resources import Resource
    from wms.pilots.models import Pilot as PilotRow
    from wms.pilots.protocol.claims import claim_job
    from wms.pilots.states import PilotState
    from wms.sites.models import Queue, Site

    site = Site.objects.create(name="site-a")
    queue = Queue.objects.create(site=site, name="q", element="host", wall_time_s=3 * 10**6)
    pilots = PilotRow.objects.bulk_create(
        [
            PilotRow(queue=queue, state=PilotState.RUNNING, token_sha256="x", batch="b")
            for _ in range(count)
        ]
    )
    resource = Resource("site-a", cpu_time_s=3 * 10**6, cores=1, memory_mb=2000, queue="site-a/q")
    times_ms = []
    for pilot in pilots:
        began = time.perf_counter()
        answer = claim_job(pilot, resource, claim_key="0" * 32, now=timezone.now())
        times_ms.append(1000 * (time.perf_counter() - began))
        if answer.work is None:
            raise SystemExit(f"a pilot got no job: {answer.reason}")
    times_ms.sort()
    return {
        "claims": count,
        "median_ms": round(statistics.median(times_ms), 2),
        "p99_ms": round(times_ms[int(count * 0.99)], 2),
    }


if __name__ == "__main__":
    base.main("claim", measure, __doc__)
