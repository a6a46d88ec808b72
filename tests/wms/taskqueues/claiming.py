"""Jobs put into TaskQueues and claimed in tests, one, all, or in threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections, transaction

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from wms.taskqueues.operations import Entry, claim, enqueue

NODE = Resource("site-a", cpu_time_s=300_000, cores=4, memory_mb=4000, platform="linux")


def put(first_id: int, count: int = 1, *, owner: str = "alice", priority: int = 1, **needs: Any):
    """Let so many jobs with these needs wait; their ids count from the first."""
    wanted = Needs.of(owner, **needs)
    enqueue([Entry(first_id + number, wanted, priority) for number in range(count)])


@transaction.atomic
def claimed(resource: Resource = NODE, **options: Any) -> int | None:
    """The id of the job that a claim gives."""
    found = claim(resource, **options)
    return None if found is None else found.job_id


def drain(resource: Resource = NODE) -> list[int]:
    """All jobs that this resource is given, one after another."""
    taken = []
    while (job_id := claimed(resource)) is not None:
        taken.append(job_id)
    return taken


def in_threads(*works: Callable[[], object]) -> None:
    """Do all of this at once, each on a connection of its own; what fails is raised."""
    errors: list[Exception] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            errors.append(error)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [], errors
