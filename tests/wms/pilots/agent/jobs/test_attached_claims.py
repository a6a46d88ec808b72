"""Attached claims: the next job comes with the answer to a report; real processes and portal."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.faulty_proxy import HANG_UP, LOSE_ANSWER, PASS
from tests.wms.pilots.agent.fence.fencing import payload_accounts
from wms.jobs.models import Attempt, Job
from wms.pilots.agent.control import Control
from wms.pilots.agent.fence.base import NoFreeAccount
from wms.pilots.agent.fence.unix_accounts import AccountPool, PayloadAccount, folder_of_locks
from wms.pilots.protocol.waiting_list import WAITING_LIST
from wms.sites.models import Queue

__all__ = ["payload_accounts"]

TRUE = "#!/bin/sh\ntrue\n"


def requests_until_the_end_of(world: World, *jobs: Job) -> list[str]:
    """The requests about jobs, in short, up to the last report of the last of these."""
    names: list[str] = []
    reports = {f"POST jobs/{job.pk}/1/report" for job in jobs}
    for method, path in world.server.seen:
        name = path.removeprefix("/pilot/v1/")
        if name == "claim" or name.endswith("/report"):
            names.append(f"{method} {name}")
        if reports <= set(names):
            break
    return names


def test_short_jobs_one_after_the_other_cost_one_request_each(world: World) -> None:
    jobs = [world.submit(TRUE) for _ in range(3)]

    assert world.start().wait() == 0

    first, *others = requests_until_the_end_of(world, *jobs)
    assert first == "POST claim"
    assert sorted(others) == sorted(f"POST jobs/{job.pk}/1/report" for job in jobs)
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


def test_a_job_that_came_too_late_is_given_back_while_the_others_still_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queue.objects.update(cores=2, memory_mb=4000)
    monkeypatch.setenv("PILOTAGE_CORES", "2")
    go = world.directory / "go"
    long = world.submit(f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.05; done\n")
    control = Control()

    def drain(method: str, path: str) -> str:
        is_of_short = path.endswith("/report") and f"/jobs/{long.pk}/" not in path
        if is_of_short and not control.is_draining:
            control.drain("somebody wants it to")
        return PASS

    thread = threading.Thread(target=world.agent(control).run)
    world.server.fault = drain
    thread.start()
    world.wait_for_state(long, "running")
    for _ in range(2):
        world.submit(TRUE)

    try:
        wait_until(Attempt.objects.filter(outcome="not_run").exists, "it is given back")
    finally:
        go.touch()
        thread.join()
    assert world.wait_for_state(long, "done").attempt_number == 1
    assert "no more jobs" in Attempt.objects.get(outcome="not_run").reason


@pytest.fixture
def with_accounts(world: World, payload_accounts: None, settings: Any) -> None:
    """A queue whose payloads need an account each, of which this node has two."""
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_IDLE_LIMIT_S": 600}
    Queue.objects.update(cores=8, memory_mb=8000, fence="sudo")


def test_no_more_jobs_are_claimed_than_there_are_accounts(
    world: World, with_accounts: None
) -> None:
    jobs = [world.submit("#!/bin/sh\nsleep 0.5\n") for _ in range(5)]

    world.start(slot={"PILOTAGE_CORES": 5, "PILOTAGE_MEMORY_MB": 8000})

    assert {world.wait_for_state(job, "done").attempt_number for job in jobs} == {1}


def test_a_pilot_waits_for_accounts_that_other_pilots_of_its_node_use(
    world: World, with_accounts: None
) -> None:
    agent = world.start()
    wait_until(lambda: "registered" in agent.log, "it registers")
    wait_until(lambda: world.server.count("POST", "/claim"), "it asks")
    held = all_accounts()
    asked = world.server.count("POST", "/claim")
    job = world.submit(TRUE)
    wait_until(lambda: world.server.count("POST", "/heartbeat") > 3, "it waits")
    assert world.server.count("POST", "/claim") <= asked + 1

    for each in held:
        each.close()

    assert world.wait_for_state(job, "done").attempt_number == 1


def all_accounts() -> list[PayloadAccount]:
    """Hold all accounts, as other pilots would; one that is in use at the moment, later."""
    accounts = AccountPool(["pilotage1", "pilotage2"], folder_of_locks())
    held: list[PayloadAccount] = []

    def have_all() -> bool:
        try:
            held.append(accounts.acquire())
        except NoFreeAccount:
            return len(held) == 2
        return False

    wait_until(have_all, "no other pilot has an account")
    return held


def test_an_idle_pilot_is_given_a_job_when_it_comes_and_not_at_its_next_poll(
    world: World, settings: Any
) -> None:
    settings.PILOTAGE |= {"AGENT_POLL_S": 3600.0, "AGENT_IDLE_LIMIT_S": 7200}
    WAITING_LIST._listener.start()
    wait_until(lambda: WAITING_LIST._listener.hears, "news of jobs is heard")
    world.start()

    jobs = []
    for _ in range(2):
        wait_until(lambda: WAITING_LIST._slots, "the pilot waits for a job")
        jobs.append(world.submit("#!/bin/sh\ntrue\n"))
        world.wait_for_state(jobs[-1], "done")

    assert {job.attempt_number for job in Job.objects.all()} == {1}
