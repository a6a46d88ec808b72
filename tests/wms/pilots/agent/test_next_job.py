"""The next job comes with the answer to a report: real processes, portal and database."""

from __future__ import annotations

import pytest

from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.faulty_proxy import HANG_UP, LOSE_ANSWER, PASS
from wms.jobs.models import Attempt, Job
from wms.sites.models import Queue

TRUE = "#!/bin/sh\ntrue\n"


def requests_until_the_end_of(world: World, job: Job) -> list[str]:
    """The requests about jobs, in short, up to the last report of this job."""
    names = []
    for method, path in world.server.seen:
        name = path.removeprefix("/pilot/v1/")
        if name == "claim" or name.endswith("/report"):
            names.append(f"{method} {name}")
        if name == f"jobs/{job.pk}/1/report":
            break
    return names


def test_short_jobs_one_after_the_other_cost_one_request_each(world: World) -> None:
    jobs = [world.submit(TRUE) for _ in range(3)]

    assert world.start().wait() == 0

    asked = requests_until_the_end_of(world, jobs[-1])
    assert asked == ["POST claim", *(f"POST jobs/{job.pk}/1/report" for job in jobs)]
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}


@pytest.mark.parametrize("fault", [LOSE_ANSWER, HANG_UP, 503])
def test_a_claim_that_went_with_a_report_is_repeated_until_it_has_an_answer(
    world: World, fault: str | int
) -> None:
    jobs = [world.submit(TRUE) for _ in range(3)]
    seen: set[str] = set()

    def fail_first(method: str, path: str) -> str | int:
        is_first = path.endswith("/report") and path not in seen
        seen.add(path)
        return fault if is_first else PASS

    world.server.fault = fail_first

    assert world.start().wait() == 0

    assert {world.wait_for_state(job, "done").attempt_number for job in jobs} == {1}
    assert Attempt.objects.count() == 3


def test_the_whole_slot_is_asked_for_when_its_only_job_ends(world: World) -> None:
    Queue.objects.update(cores=1, memory_mb=4000)
    small = world.submit(TRUE, memory_mb=500)
    large = world.submit(TRUE, memory_mb=4000)
    slot = {"PILOTAGE_CORES": 1, "PILOTAGE_MEMORY_MB": 4000}

    assert world.start(slot=slot).wait() == 0

    first, then = sorted([small, large], key=lambda job: Attempt.objects.get(job=job).matched_at)
    assert requests_until_the_end_of(world, then).count("POST claim") == 1
    assert {world.wait_for_state(job, "done").attempt_number for job in (first, then)} == {1}
