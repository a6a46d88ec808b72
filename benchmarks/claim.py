"""The claim, with up to ten million waiting jobs in a hundred thousand TaskQueues.

Each claim is one transaction: draw a TaskQueue, draw a job, take it out, commit, the disk waited
for. Pilots of all kinds ask, at many sites (`benchmarks.tq_workload`). Every answer is checked
against the workload's own rule: no illegal match (`illegal`), and nobody is told that there is
nothing while a job that fits is waiting (`missed`), also after half of the jobs were drained.
Clients are processes with a connection each. `busy` is one client while jobs are submitted and
priorities recomputed all the time. `bound` is the whole claim of a pilot, with its attempt and
events.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import statistics
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any

from benchmarks import base
from benchmarks.tq_workload import CPU_SEGMENTS_S, Pilot, Workload, matches

_CHUNK = 100_000
#: TaskQueues that appear while others claim.
_NEW = 1000
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Size:
    """A filled database, and how often it is claimed from by one client and by eight."""

    jobs: int
    task_queues: int
    claims: int
    claims_of_eight: int


FULL = (
    # The eight take nearly half of all jobs: many TaskQueues are emptied by claims.
    Size(100_000, 1_000, 3000, 44_000),
    Size(1_000_000, 10_000, 3000, 8000),
    Size(10_000_000, 100_000, 3000, 4000),
)
QUICK = (Size(4_000, 200, 200, 400),)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a pilot asked, the job it got, and how long it took."""

    pilot: Pilot
    job_id: int | None
    took_s: float


def measure(is_quick: bool) -> dict[str, Any]:
    """Measure all sizes, one after another, each in a database filled anew."""
    base.load_django()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    found: dict[str, Any] = {"scenarios": [], "submit_s": {}, "recompute_s": {}, "plans": {}}
    for size in QUICK if is_quick else FULL:
        _measure_size(size, found)
    found["submit_s"]["submit_jobs"] = _measure_submission(1_000 if is_quick else 100_000)
    return found


def _measure_size(size: Size, found: dict[str, Any]) -> None:
    workload = Workload(size.jobs, size.task_queues)
    found["submit_s"][f"enqueue {_CHUNK} of {size.jobs}"] = _fill(workload)
    found["recompute_s"][size.task_queues] = _recompute_s(runs=3)
    found["plans"][size.task_queues] = _plans(workload)
    table = _Table(workload, _grown(size))
    scenarios = found["scenarios"]
    alone = _claims(workload, size.claims, "alone")
    scenarios.append(_row(size, 1, alone, table))
    _claims(workload, 100, "warm")
    with _Traffic(size):
        busy = _claims(workload, size.claims, "busy")
    scenarios.append({"load": "busy", **_row(size, 1, busy, table)})
    table.forget_order()
    answers, took_s = _claims_of_many(workload, 8, size.claims_of_eight // 8)
    scenarios.append(_row(size, 8, answers, table, took_s=took_s))
    _drain(workload)
    table.read()
    drained = _claims(workload, 600, "drained")
    scenarios.append({"load": "half drained", **_row(size, 1, drained, table)})


class _Table:
    """Which jobs wait, as the workload knows it: to check answers by."""

    def __init__(self, workload: Workload, grown: Workload) -> None:
        self._groups = workload.groups
        # The first of these are the workload's own.
        self._task_queues = grown.task_queues
        self._queue_of = array("i", (index for _, index, _, _ in workload.job_rows()))
        self._left = Counter(self._queue_of)
        self._knows_order = True

    def forget_order(self) -> None:
        """From now on answers come from several clients: nobody knows what waited when."""
        self._knows_order = False

    def read(self) -> None:
        """Learn from the database what waits now."""
        from wms.taskqueues.models import WaitingJob

        ids = WaitingJob.objects.values_list("job_id", flat=True)
        self._left = Counter(self._index(job_id) for job_id in ids.iterator(chunk_size=50_000))
        self._knows_order = True

    def judge(self, answers: Iterable[Answer]) -> tuple[int, int]:
        """How many of the matches are illegal, and how many were missed."""
        illegal = missed = 0
        for answer in answers:
            if answer.job_id is None:
                missed += self._knows_order and self._is_any_left(answer.pilot)
            else:
                index = self._index(answer.job_id)
                illegal += not self._is_legal(index, answer.pilot)
                self._left[index] -= 1
        return illegal, missed

    def _index(self, job_id: int) -> int:
        if job_id <= len(self._queue_of):
            return self._queue_of[job_id - 1]
        return _grown_index(job_id, len(self._task_queues))

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


def _fill(workload: Workload) -> float:
    """Empty the database, put all jobs in, recompute; the median seconds for 100,000 jobs."""
    from django.db import connection

    from wms.accounting.models import AccountingGroup
    from wms.core.models import User
    from wms.taskqueues.priorities import recompute
    from wms.taskqueues.services import enqueue

    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE taskqueues_taskqueue, taskqueues_waitingjob, taskqueues_tally,"
            " taskqueues_ticket, accounting_accountinggroup, core_user CASCADE"
        )
    names = {owner for group in workload.groups.values() for owner in group["owners"]}
    User.objects.bulk_create([User(username=name) for name in sorted(names)])
    AccountingGroup.objects.bulk_create(
        [
            AccountingGroup(name=name, share=g["share"], has_job_sharing=g["job_sharing"])
            for name, g in workload.groups.items()
        ]
    )
    times_s = []
    for chunk in _chunks(workload.job_rows(), _CHUNK):
        entries = _entries(workload, chunk)
        began = time.perf_counter()
        enqueue(entries)
        times_s.append(time.perf_counter() - began)
    recompute()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return round(statistics.median(times_s), 2)


def _chunks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(itertools.islice(rows, size)):
        yield chunk


def _entries(workload: Workload, rows: Collection[tuple[int, int, int, int]]) -> list[Any]:
    from matching.needs import Needs
    from wms.taskqueues.services import Entry

    needs = {}
    for index in {row[1] for row in rows}:
        wanted = workload.task_queues[index]
        needs[index] = Needs.of(
            wanted["Owner"],
            owner_group=wanted["OwnerGroup"],
            cpu_time_s=wanted["CPUTime"],
            segments_s=CPU_SEGMENTS_S,
            sites=wanted.get("Sites", ()),
            banned_sites=wanted.get("BannedSites", ()),
            queues=wanted.get("GridCEs", ()),
            platforms=wanted.get("Platforms", ()),
            tags=wanted.get("Tags", ()),
            memory_mb=wanted.get("MinRAM", 0),
            job_type=wanted["JobTypes"][0],
        )
    return [Entry(job_id, needs[index], priority) for job_id, index, priority, _ in rows]


def _resource(pilot: Pilot, groups: dict[str, Any]) -> Any:
    from matching.resources import JobKind, Resource

    group = pilot["OwnerGroup"]
    is_private = isinstance(group, str)
    is_shared = is_private and groups[group]["job_sharing"]
    return Resource(
        site=pilot["Site"],
        queue=pilot["GridCE"],
        platform=pilot["Platform"],
        cpu_time_s=pilot["CPUTime"],
        memory_mb=pilot["MaxRAM"],
        cores=pilot["NumberOfProcessors"],
        tags=tuple(pilot["Tag"]),
        required_tags=tuple(pilot.get("RequiredTag", ())),
        owner="" if is_shared else pilot.get("Owner", ""),
        owner_groups=(group,) if is_private else (),
        pilot_type="private" if is_private else "generic",
        excluded=tuple(JobKind(job_type=each) for each in pilot.get("BannedJobTypes", ())),
    )


def _claims(workload: Workload, count: int, stream: str) -> list[Answer]:
    return list(_ask(workload.mixed_pilots(count, stream), workload.groups))


def _ask(pilots: Iterable[Pilot], groups: dict[str, Any]) -> Iterator[Answer]:
    from django.db import transaction

    from wms.taskqueues.services import claim

    for pilot in pilots:
        resource = _resource(pilot, groups)
        began = time.perf_counter()
        with transaction.atomic():
            found = claim(resource)
        took_s = time.perf_counter() - began
        yield Answer(pilot, None if found is None else found.job_id, took_s)


def _claims_of_many(workload: Workload, clients: int, each: int) -> tuple[list[Answer], float]:
    """The answers of all clients, and the time from the first request to the last answer."""
    pilots = [list(workload.mixed_pilots(each, f"client{n}")) for n in range(clients)]
    ready, start = _SPAWN.Barrier(clients + 1), _SPAWN.Event()
    with _SPAWN.Manager() as manager:
        answers: Any = manager.list()
        processes = [
            _SPAWN.Process(target=_client, args=(some, workload.groups, ready, start, answers))
            for some in pilots
        ]
        for process in processes:
            process.start()
        ready.wait()
        began = time.perf_counter()
        start.set()
        for process in processes:
            process.join()
        took_s = time.perf_counter() - began
        return [answer for some in answers for answer in some], took_s


def _client(pilots: list[Pilot], groups: Any, ready: Any, start: Event, answers: Any) -> None:
    base.load_django()
    list(_ask(pilots[:1], groups))
    ready.wait()
    start.wait()
    answers.append(list(_ask(pilots[1:], groups)))


class _Traffic:
    """While it is entered, other processes submit jobs and recompute priorities without a pause."""

    def __init__(self, size: Size) -> None:
        self._over = _SPAWN.Event()
        self._running = _SPAWN.Barrier(3)
        arguments = (size, self._running, self._over)
        self._processes = [
            _SPAWN.Process(target=target, args=arguments) for target in (_submit_on, _recompute_on)
        ]

    def __enter__(self) -> None:
        for process in self._processes:
            process.start()
        self._running.wait()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for process in self._processes:
            process.join()


def _grown(size: Size) -> Workload:
    """The TaskQueues of this size and some more: what is submitted while others claim."""
    return Workload(2 * _NEW + 10 * size.task_queues, size.task_queues + _NEW)


def _grown_index(job_id: int, task_queues: int) -> int:
    return job_id * 7919 % task_queues


def _submit_on(size: Size, running: Any, over: Event) -> None:
    """A thousand jobs a second, 200 at a time, some of them in TaskQueues that are new."""
    base.load_django()
    from wms.taskqueues.services import enqueue

    workload = _grown(size)
    ids = itertools.count(size.jobs + 1)
    running.wait()
    while not over.is_set():
        rows = [
            (job_id, _grown_index(job_id, len(workload.task_queues)), 1, 0)
            for job_id in itertools.islice(ids, 200)
        ]
        enqueue(_entries(workload, rows))
        time.sleep(0.2)


def _recompute_on(_size: Size, running: Any, over: Event) -> None:
    base.load_django()
    from wms.taskqueues.priorities import recompute
    from wms.taskqueues.waiting import fold_tally

    running.wait()
    while not over.is_set():
        began = time.perf_counter()
        recompute()
        fold_tally()
        time.sleep(time.perf_counter() - began)


def _drain(workload: Workload) -> None:
    """Take all jobs out of every second TaskQueue: what is empty must be no candidate any more."""
    from wms.taskqueues.services import withdraw

    ids = (job_id for job_id, index, _, _ in workload.job_rows() if index % 2)
    for chunk in _chunks(ids, _CHUNK):
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
    """Time and buffers of the statements of a claim, for a usual pilot: medians of 51."""
    from django.db import connection

    from wms.taskqueues import draw, waiting

    found: dict[str, Any] = {}
    pilots = [p for p in workload.mixed_pilots(120, "plans") if p["kind"] == "generic_1core"][:51]
    for name in ("throw", "scan", "take"):
        plans = []
        for pilot in pilots:
            resource = _resource(pilot, workload.groups)
            drawn = draw.Draw(resource)
            candidate = drawn.next()
            if candidate is None:
                continue
            statement, parameters = draw.explained(name, resource, candidate.needs.cpu_time_s)
            if name == "take":
                statement = waiting.TAKE_BY[drawn.law]
                parameters = waiting.take_parameters(candidate.task_queue_id)
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
                plans.append(cursor.fetchone()[0])
        found[name] = _plan_figures(plans)
    return found


def _plan_figures(plans: list[Any]) -> dict[str, float]:
    tops = [(json.loads(plan) if isinstance(plan, str) else plan)[0] for plan in plans]
    return {
        "planning_ms": round(statistics.median(top["Planning Time"] for top in tops), 3),
        "execution_ms": round(statistics.median(top["Execution Time"] for top in tops), 3),
        "buffers": statistics.median(top["Plan"]["Shared Hit Blocks"] for top in tops),
    }


def _measure_submission(count: int) -> float:
    """Jobs of one call to `submit_jobs`: their rows, events and places in TaskQueues."""
    from matching.needs import Needs
    from wms.core.actors import Actor
    from wms.core.models import User
    from wms.jobs.services import JobSpec, create_workspace, submit_jobs

    owner, _ = User.objects.get_or_create(username="submitter")
    specs = [
        JobSpec(
            name=f"job{number}",
            executable="/bin/true",
            arguments=(str(number),),
            needs=Needs.of("submitter", memory_mb=number % 20),
        )
        for number in range(count)
    ]
    workspace = create_workspace(owner, {})
    began = time.perf_counter()
    submit_jobs(specs, owner=owner, workspace=workspace, actor=Actor.system("benchmark"))
    return round(time.perf_counter() - began, 2)


if __name__ == "__main__":
    base.main("claim", measure, __doc__)
