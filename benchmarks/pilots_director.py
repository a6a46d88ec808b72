"""Benchmark of the director: a cycle over 10,000 TaskQueues, 500 queues and 50,000 pilots.

Also `frontends`: a cycle of all requests of two frontends, each with 10,000 jobs in 500 TaskQueues,
that share 200 queues, with the memory of the process.

A cycle reads all of that, with 120,000 waiting jobs, shares the jobs out, stores a request for
every queue and wakes the submitters. `director_cycle_s` is the median of several cycles in one
process, the first one left out as a worker has long had it; `first_cycle_s` is that one. TaskQueues
differ in owner, cores, memory, time, sites, tags, platform and requirements; pilots are at the
queues in all states.
"""

from __future__ import annotations

import random
import resource
import statistics
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from benchmarks import base

_OWNERS = 50
_RUNNING_PART = 0.7
_BUSY_PART = 0.9
_BATCH = 5000
_TIMES_S = (500, 5_000, 50_000)
_REQUIREMENTS = (
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "Memory >= 3000",
    "Cpus > 1",
    'Platform == "linux-x86_64"',
)


@dataclass(frozen=True, slots=True)
class Size:
    """What the director finds."""

    task_queues: int = 10_000
    queues: int = 500
    jobs: int = 120_000
    pilots: int = 50_000
    cycles: int = 5
    frontends: int = 0


QUICK = Size(task_queues=200, queues=20, jobs=2_000, pilots=500, cycles=2)
SHARED = Size(task_queues=1_000, queues=200, jobs=20_000, pilots=10_000, frontends=2)
QUICK_SHARED = Size(task_queues=40, queues=10, jobs=400, pilots=100, cycles=2, frontends=2)


def director_cycle_s(*, is_quick: bool = False) -> float:
    """The duration of one cycle in seconds. Runs inside `base.scratch_servers`."""
    found: float = measure(is_quick)["director_cycle_s"]
    return found


def measure(is_quick: bool) -> dict[str, Any]:
    """Prepare and measure in processes of their own."""
    found = _measured(QUICK if is_quick else Size())
    found["frontends"] = _measured(QUICK_SHARED if is_quick else SHARED)
    return found


def _measured(size: Size) -> dict[str, Any]:
    base.in_a_process(_prepare, size)
    found: dict[str, Any] = base.in_a_process(_measure, size)
    return found


def _measure(size: Size) -> dict[str, Any]:
    base.load_django()
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from wms.pilots.pressure import director
    from wms.pilots.pressure_models import PressureRequest

    durations = []
    for _ in range(size.cycles + 1):
        began = time.perf_counter()
        report = director.run_cycle(timezone.now())
        durations.append(time.perf_counter() - began)
    with CaptureQueriesContext(connection) as queries:
        director.plan_requests(timezone.now())
    requests = list(PressureRequest.objects.all())
    found = {
        "task_queues": size.task_queues,
        "queues": size.queues,
        "jobs": size.jobs,
        "pilots": size.pilots,
        "frontends": size.frontends,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "director_cycle_s": round(statistics.median(durations[1:]), 2),
        "first_cycle_s": round(durations[0], 2),
        "statements": len(queries),
        "served": report["served"],
        "jobs_shared": sum(row.waiting_jobs for row in requests),
        "wanted": sum(row.wanted for row in requests),
        "granted": sum(row.granted for row in requests),
    }
    base.close_connections()
    return found


def _prepare(size: Size) -> None:
    base.load_django()
    from django.core.management import call_command
    from django.db import connection
    from django.utils import timezone

    call_command("migrate", verbosity=0)
    chance, now = random.Random(1), timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE core_user, accounting_frontend, sites_site CASCADE")
        cursor.execute("TRUNCATE taskqueues_tally, taskqueues_waitingjob, jobs_attempt CASCADE")
        _make_queues(size, chance)
        _make_frontends(size)
        _make_jobs(size, chance)
        _make_pilots(size, chance, now)
        cursor.execute("ANALYZE")
    base.close_connections()


def _make_queues(size: Size, chance: random.Random) -> None:
    from wms.sites.models import Queue, Site

    sites = Site.objects.bulk_create(
        [Site(name=f"site-{number:03}") for number in range(max(1, size.queues * 3 // 5))]
    )
    Queue.objects.bulk_create(
        [
            Queue(
                site=sites[number % len(sites)],
                name=f"queue-{number}",
                element="slurm",
                settings={"log_directory": "/logs"},
                max_pilots=chance.choice([50, 200, 500]),
                max_queued_pilots=50,
                cores=chance.choice([1, 4, 8, 16]),
                memory_mb=chance.choice([2, 4, 16, 32]) * 1000,
                gpus=chance.choice([0, 0, 0, 1]),
                wall_time_s=chance.choice([86_400, 172_800]),
                platform=chance.choice(["", "linux-x86_64", "linux-aarch64"]),
                tags=chance.choice([[], [], ["ssd"], ["ssd", "fast"]]),
            )
            for number in range(size.queues)
        ]
    )


def _make_frontends(size: Size) -> None:
    """Frontends with a group each and an entry at every queue, the first with the largest share."""
    from wms.accounting.models import AccountingGroup, Frontend
    from wms.sites.frontends.models import FrontendEntry
    from wms.sites.models import Queue

    made = Frontend.objects.bulk_create([Frontend(name=_group(n)) for n in range(size.frontends)])
    AccountingGroup.objects.bulk_create(
        [AccountingGroup(name=frontend.name, frontend=frontend) for frontend in made]
    )
    FrontendEntry.objects.bulk_create(
        [
            FrontendEntry(frontend=frontend, queue=queue, share=size.frontends - number)
            for queue in Queue.objects.all()
            for number, frontend in enumerate(made)
        ]
    )


def _group(number: int) -> str:
    return f"group-{number}"


def _make_jobs(size: Size, chance: random.Random) -> None:
    from django.contrib.auth import get_user_model

    from wms.sites.models import Site
    from wms.taskqueues.models import Tally, TaskQueue, Ticket, WaitingJob

    users = get_user_model()
    owners = users.objects.bulk_create([users(username=f"user-{n}") for n in range(_OWNERS)])
    names = list(Site.objects.values_list("name", flat=True))
    made = TaskQueue.objects.bulk_create(
        [
            TaskQueue(
                key=f"{number:064}",
                owner=chance.choice(owners),
                owner_group=_group(number % size.frontends) if size.frontends else "",
                **_needs(chance, names),
            )
            for number in range(size.task_queues)
        ],
        batch_size=_BATCH,
    )
    each = size.jobs // size.task_queues
    Ticket.objects.bulk_create(
        [
            Ticket(task_queue=row, cpu_time_s=row.cpu_time_s, priority=chance.random() + 0.1)
            for row in made
        ],
        batch_size=_BATCH,
    )
    Tally.objects.bulk_create(
        [Tally(task_queue_id=row.pk, priority=1, jobs=each) for row in made], batch_size=_BATCH
    )
    WaitingJob.objects.bulk_create(
        [WaitingJob(job_id=n, task_queue=made[n % len(made)]) for n in range(each * len(made))],
        batch_size=_BATCH,
    )


def _needs(chance: random.Random, sites: list[str]) -> dict[str, Any]:
    where = chance.random()
    count = 0 if where < 0.4 else 1 if where < 0.7 else chance.randint(2, min(20, len(sites)))
    cores = chance.choice([1, 1, 1, 2, 4, 8])
    return {
        "cpu_time_s": chance.choice(_TIMES_S),
        "cores": cores,
        "max_cores": cores,
        "memory_mb": chance.choice([0, 500, 1000, 2000, 4000]) + 10 * chance.randint(0, 9),
        "gpus": 1 if chance.random() < 0.05 else 0,
        "sites": sorted(chance.sample(sites, count)),
        "tags": ["ssd"] if chance.random() < 0.1 else [],
        "platforms": ["linux-x86_64"] if chance.random() < 0.5 else [],
        "requirements": chance.choice(_REQUIREMENTS),
    }


def _make_pilots(size: Size, chance: random.Random, now: datetime) -> None:
    from django.contrib.auth import get_user_model
    from django.db import transaction

    from wms.accounting.models import Frontend
    from wms.jobs.models import Attempt, Job, Workspace
    from wms.jobs.specs import SharedValues
    from wms.jobs.writing.stored_descriptions import ids_by_key
    from wms.pilots.models import Pilot
    from wms.sites.models import Queue

    queues = list(Queue.objects.select_related("site"))
    frontends: list[Frontend | None] = [*Frontend.objects.order_by("pk")] or [None]
    pilots = []
    for number in range(size.pilots):
        queue, is_running = queues[number % len(queues)], chance.random() < _RUNNING_PART
        pilots.append(
            Pilot(
                queue=queue,
                frontend=frontends[number // len(queues) % len(frontends)],
                state="running" if is_running else "queued",
                batch="bench",
                native_id=f"bench.{number}",
                secret_sha256="x",
                token_sha256="x" if is_running else "",
                node={"slot_cores": queue.cores, "slot_memory_mb": queue.memory_mb},
                registered_at=now - timedelta(seconds=chance.randint(0, 80_000))
                if is_running
                else None,
            )
        )
    made = Pilot.objects.bulk_create(pilots, batch_size=_BATCH)
    busy = [each for each in made if each.state == "running" and chance.random() < _BUSY_PART]
    owner = get_user_model().objects.first()
    workspace = Workspace.objects.create(owner=owner)
    shared = SharedValues.of({"executable": "run", "wall_limit_s": 3600})
    with transaction.atomic():
        description_id = ids_by_key([shared])[shared.key]
    job = {
        "owner": owner,
        "workspace": workspace,
        "description_id": description_id,
        "state": "running",
        "attempt_number": 1,
    }
    jobs = Job.objects.bulk_create([Job(name="run", **job) for _ in busy], batch_size=_BATCH)
    Attempt.objects.bulk_create(
        [
            Attempt(
                job=running,
                number=1,
                pilot_id=pilot.pk,
                site_name=pilot.queue.site.name,
                cores=chance.randint(1, pilot.queue.cores),
            )
            for running, pilot in zip(jobs, busy, strict=True)
        ],
        batch_size=_BATCH,
    )


if __name__ == "__main__":
    base.main("pilots_director", measure, __doc__)
