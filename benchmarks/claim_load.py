"""Load of the claim benchmark: a database full of waiting jobs, timed claims, traffic meanwhile.

`fill` puts the jobs of a workload into their TaskQueues; `claims` and `claims_of_many` return the
answers that pilots got, asked by one process or by several, these with what their sessions were
seen to wait for. `Meanwhile` runs other processes beside them: `submit_on` enqueues jobs,
`recompute_on` and `keep_house` compute priorities.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any

import psycopg

from benchmarks import base
from benchmarks.tq_workload import CPU_SEGMENTS_S, Pilot, Workload

CHUNK = 100_000
#: TaskQueues that appear while others claim.
_NEW = 1000
_SPAWN = multiprocessing.get_context("spawn")
#: Pause between two looks at the sessions.
_LOOK_S = 0.01
_SESSIONS = """
SELECT pid, CASE WHEN state <> 'active' THEN 'its client'
                 ELSE coalesce(wait_event_type || ': ' || wait_event, 'the processor') END
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Size:
    """A filled database, and how often it is claimed from by one client and by eight."""

    jobs: int
    task_queues: int
    claims: int
    claims_of_eight: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a pilot asked, the job it got, and how long it took."""

    pilot: Pilot
    job_id: int | None
    took_s: float


def fill(workload: Workload) -> float:
    """Empty the database, put all jobs in, recompute; the median seconds for 100,000 jobs."""
    from django.db import connection

    from wms.accounting.models import AccountingGroup
    from wms.core.models import User
    from wms.taskqueues.operations import enqueue
    from wms.taskqueues.priorities import recompute

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
    for chunk in chunks(workload.job_rows(), CHUNK):
        entries = entries_of(workload, chunk)
        began = time.perf_counter()
        enqueue(entries)
        times_s.append(time.perf_counter() - began)
    recompute()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return round(statistics.median(times_s), 2)


def chunks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(itertools.islice(rows, size)):
        yield chunk


def entries_of(workload: Workload, rows: Collection[tuple[int, int, int, int]]) -> list[Any]:
    from matching.task_queues.needs import Needs
    from wms.taskqueues.operations import Entry

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


def resource_of(pilot: Pilot, groups: dict[str, Any]) -> Any:
    from matching.task_queues.resources import JobKind, Resource

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


def claims(workload: Workload, count: int, stream: str) -> list[Answer]:
    return list(_ask(workload.mixed_pilots(count, stream), workload.groups))


def _ask(pilots: Iterable[Pilot], groups: dict[str, Any]) -> Iterator[Answer]:
    from django.db import transaction

    from wms.taskqueues.operations import claim

    for pilot in pilots:
        resource = resource_of(pilot, groups)
        began = time.perf_counter()
        with transaction.atomic():
            found = claim(resource)
        took_s = time.perf_counter() - began
        yield Answer(pilot, None if found is None else found.job_id, took_s)


def claims_of_many(
    workload: Workload, clients: int, each: int
) -> tuple[list[Answer], float, dict[str, float]]:
    """The answers of all clients, the time from the first request to the last answer, and what the
    clients' sessions waited for meanwhile, in parts of all looks at them.
    """
    pilots = [list(workload.mixed_pilots(each, f"client{n}")) for n in range(clients)]
    ready, start = _SPAWN.Barrier(clients + 1), _SPAWN.Event()
    with _SPAWN.Manager() as manager:
        answers: Any = manager.list()
        processes = [
            _SPAWN.Process(target=_client, args=(some, workload.groups, ready, start, answers))
            for some in pilots
        ]
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            others = {pid for pid, _ in connection.execute(_SESSIONS)}
            for process in processes:
                process.start()
            ready.wait()
            began = time.perf_counter()
            start.set()
            seen: Counter[str] = Counter()
            while any(process.is_alive() for process in processes):
                looked = connection.execute(_SESSIONS)
                seen.update(what for pid, what in looked if pid not in others)
                time.sleep(_LOOK_S)
            took_s = time.perf_counter() - began
        waits = {what: round(count / seen.total(), 3) for what, count in seen.most_common(8)}
        return [answer for some in answers for answer in some], took_s, waits


def _client(pilots: list[Pilot], groups: Any, ready: Any, start: Event, answers: Any) -> None:
    base.load_django()
    list(_ask(pilots[:1], groups))
    ready.wait()
    start.wait()
    answers.append(list(_ask(pilots[1:], groups)))


class Meanwhile:
    """While it is entered, other processes do what their functions are."""

    def __init__(self, size: Size, *works: Callable[[Size, Any, Event], None]) -> None:
        self._over = _SPAWN.Event()
        self._running = _SPAWN.Barrier(len(works) + 1)
        arguments = (size, self._running, self._over)
        self._processes = [_SPAWN.Process(target=work, args=arguments) for work in works]

    def __enter__(self) -> None:
        for process in self._processes:
            process.start()
        self._running.wait()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for process in self._processes:
            process.join()


def grown(size: Size) -> Workload:
    """The TaskQueues of this size and some more: what is submitted while others claim."""
    return Workload(2 * _NEW + 10 * size.task_queues, size.task_queues + _NEW)


def grown_index(job_id: int, task_queues: int) -> int:
    return job_id * 7919 % task_queues


def submit_on(size: Size, running: Any, over: Event) -> None:
    """A thousand jobs a second, 200 at a time, some of them in TaskQueues that are new."""
    base.load_django()
    from wms.taskqueues.operations import enqueue

    workload = grown(size)
    ids = itertools.count(size.jobs + 1)
    running.wait()
    while not over.is_set():
        rows = [
            (job_id, grown_index(job_id, len(workload.task_queues)), 1, 0)
            for job_id in itertools.islice(ids, 200)
        ]
        enqueue(entries_of(workload, rows))
        time.sleep(0.2)


def recompute_on(_size: Size, running: Any, over: Event) -> None:
    """Priorities of all TaskQueues, again and again, with a pause as long as each time took."""
    base.load_django()
    from wms.taskqueues.priorities import recompute
    from wms.taskqueues.waiting import fold_tally

    running.wait()
    while not over.is_set():
        began = time.perf_counter()
        recompute()
        fold_tally()
        time.sleep(time.perf_counter() - began)


def keep_house(_size: Size, running: Any, over: Event) -> None:
    """What the loop of the priorities does in an installation, every five seconds."""
    base.load_django()
    from django.utils import timezone

    from wms.taskqueues.priorities import run_cycle

    running.wait()
    while not over.wait(5):
        now = timezone.now()
        run_cycle(now, last=now)
