"""Several jobs in one pilot: real processes, a real portal, a real database."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.faulty_proxy import HANG_UP, LOSE_ANSWER, PASS
from tests.wms.pilots.agent.payload.test_execution import wait_until_gone
from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.models import Attempt, Job, WorkspaceFile
from wms.pilots.agent.control import Control
from wms.pilots.models import Pilot
from wms.sites.models import Queue


@pytest.fixture(autouse=True)
def _large_queue(world: World) -> None:
    Queue.objects.update(cores=8, memory_mb=8000, gpus=2)


def slot(cores: int, **others: int) -> dict[str, int]:
    return {"PILOTAGE_CORES": cores, "PILOTAGE_MEMORY_MB": 8000, **others}


def until_told(world: World, name: str) -> str:
    """A payload that leaves its process id in `NAME.pid` and runs until `NAME.go` appears."""
    here = world.directory
    return (
        f"#!/bin/sh\necho $$ >{here}/{name}.new && mv {here}/{name}.new {here}/{name}.pid\n"
        f"while [ ! -e {here}/{name}.go ]; do sleep 0.05; done\n"
    )


def pid_of(world: World, name: str) -> int:
    file = world.directory / f"{name}.pid"
    wait_until(file.exists, f"the payload {name} runs")
    return int(file.read_text())


def let_go(world: World, *names: str) -> None:
    for name in names:
        (world.directory / f"{name}.go").touch()


def test_a_pilot_runs_as_many_jobs_side_by_side_as_it_has_cores(world: World) -> None:
    here = world.directory
    # Each ends only when all three are there.
    together = (
        f"#!/bin/sh\ntouch {here}/here-$PILOTAGE_JOB\n"
        f'while [ "$(ls {here} | grep -c here-)" -lt 3 ]; do sleep 0.05; done\n'
    )
    jobs = [world.submit(together) for _ in range(3)]

    agent = world.start(slot=slot(3))

    assert agent.wait() == 0
    assert {world.wait_for_state(job, "done").attempt_number for job in jobs} == {1}
    assert not agent.work_dir.exists()


def test_no_more_jobs_run_than_cores_memory_and_gpus_allow(world: World) -> None:
    jobs = [world.submit(until_told(world, f"job{n}"), memory_mb=3000) for n in range(3)]
    gpu = [world.submit(until_told(world, f"gpu{n}"), gpus=1) for n in range(2)]
    agent = world.start(slot=slot(8, PILOTAGE_GPUS=1))

    wait_until(lambda: has_asked_in_vain(world), "the pilot is full")

    assert Job.objects.filter(pk__in=[job.pk for job in jobs], state="running").count() == 2
    assert Job.objects.filter(pk__in=[job.pk for job in gpu], state="running").count() == 1
    let_go(world, "job0", "job1", "job2", "gpu0", "gpu1")
    assert agent.wait() == 0
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}


def has_asked_in_vain(world: World) -> bool:
    """Three jobs run, and after that the pilot has asked twice."""
    if Job.objects.filter(state="running").count() < 3:
        return False
    before = world.server.count("POST", "/claim")
    wait_until(lambda: world.server.count("POST", "/claim") > before + 2, "it asks again")
    return True


def test_a_job_learns_what_it_may_use(world: World) -> None:
    show = "#!/bin/sh\necho $PILOTAGE_CORES $OMP_NUM_THREADS $PILOTAGE_MEMORY_MB $PILOTAGE_GPUS\n"
    large = world.submit(show, cores=2, max_cores=3, memory_mb=500, gpus=1)
    agent = world.start(slot=slot(4, PILOTAGE_GPUS=2))
    agent.wait()
    threads = world.submit(show, environment={"OMP_NUM_THREADS": "7"})

    world.start(slot=slot(1)).wait()

    assert world.log_of(large) == "3 3 500 1\n"
    assert world.log_of(threads) == "1 7 0 0\n"
    agent.pilot.refresh_from_db()
    assert agent.pilot.node["slot_cores"] == 4
    assert agent.pilot.node["slot_memory_mb"] == 8000
    assert agent.pilot.node["slot_gpus"] == 2


def test_when_a_job_ends_the_pilot_asks_at_once_for_another(world: World, settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 100.0}
    names = ("a", "b")
    first = [world.submit(until_told(world, name)) for name in names]
    agent = world.start(slot=slot(2))
    for name in names:
        pid_of(world, name)
    then = world.submit("#!/bin/sh\ntrue\n")

    let_go(world, "a")

    world.wait_for_state(then, "done")
    assert world.wait_for_state(first[1], "running")
    let_go(world, "b")
    world.wait_for_state(first[1], "done")
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait() == 143


def test_a_job_that_ends_right_after_a_claim_in_vain_makes_room_for_another_soon(
    world: World, settings
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 100.0}
    names = ("a", "b")
    first = [world.submit(until_told(world, name)) for name in names]
    agent = world.start(slot=slot(3))
    wait_until(lambda: world.server.count("POST", "/claim") == 3, "it has asked in vain")
    then = world.submit("#!/bin/sh\ntrue\n")

    let_go(world, "a")

    # In the rest after its claim in vain it would be told no, and ask again in 100 s.
    world.wait_for_state(then, "done")
    let_go(world, "b")
    world.wait_for_state(first[1], "done")
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait() == 143


def test_a_pilot_does_not_end_before_it_has_asked_for_its_whole_slot_in_vain(
    world: World, settings
) -> None:
    # Shorter than a pause: the first one that counts as idle is the last.
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_IDLE_LIMIT_S": 0.01}
    names = ("a", "b")
    for name in names:
        world.submit(until_told(world, name))
    agent = world.start(slot=slot(2))
    for name in names:
        pid_of(world, name)
    wide = world.submit("#!/bin/sh\ntrue\n", cores=2)

    # Each is answered that there is nothing for the one core that it leaves.
    let_go(world, *names)

    world.wait_for_state(wide, "done")
    assert agent.wait() == 0


def test_one_job_is_killed_and_the_other_goes_on(world: World) -> None:
    unwanted, wanted = (world.submit(until_told(world, name)) for name in ("a", "b"))
    agent = world.start(slot=slot(2))
    unwanted_pid, wanted_pid = pid_of(world, "a"), pid_of(world, "b")

    operations.kill_jobs([unwanted.pk], actor=Actor.person(world.alice), reason="a mistake")

    wait_until_gone(unwanted_pid)
    assert Path(f"/proc/{wanted_pid}").exists()
    let_go(world, "b")
    assert agent.wait() == 0
    world.wait_for_state(unwanted, "killed")
    world.wait_for_state(wanted, "done")


def test_all_jobs_at_hand_are_told_in_heartbeats(world: World) -> None:
    jobs = [world.submit(until_told(world, name)) for name in ("a", "b")]
    agent = world.start(slot=slot(2))
    pids = [pid_of(world, name) for name in ("a", "b")]

    ids = [job.pk for job in jobs]
    operations.kill_jobs(ids, actor=Actor.person(world.alice), reason="a mistake")

    for pid in pids:
        wait_until_gone(pid)
    assert agent.wait() == 0


def test_sigterm_gives_all_jobs_back_within_ten_seconds(world: World) -> None:
    names = ("a", "b", "c")
    jobs = [world.submit("#!/bin/sh\ntrap '' TERM\n" + until_told(world, n)[10:]) for n in names]
    agent = world.start(slot=slot(3))
    pids = [pid_of(world, name) for name in names]

    started = time.monotonic()
    agent.process.send_signal(signal.SIGTERM)

    assert agent.wait() == 143
    assert time.monotonic() - started < 10
    for job, pid in zip(jobs, pids, strict=True):
        wait_until_gone(pid)
        world.wait_for_state(job, "waiting")
    assert {"terminated" in each.reason for each in Attempt.objects.all()} == {True}
    assert not agent.work_dir.exists()


def test_a_murdered_pilot_leaves_none_of_its_payloads_behind(world: World) -> None:
    names = ("a", "b")
    for name in names:
        world.submit(until_told(world, name))
    agent = world.start(slot=slot(2))
    pids = [pid_of(world, name) for name in names]

    agent.process.kill()

    for pid in pids:
        wait_until_gone(pid)


def test_a_pilot_without_credential_stops_all_payloads(world: World) -> None:
    names = ("a", "b")
    for name in names:
        world.submit(until_told(world, name))
    agent = world.start(slot=slot(2))
    pids = [pid_of(world, name) for name in names]

    Pilot.objects.update(token_sha256="0" * 64)

    assert agent.wait() == 77
    for pid in pids:
        wait_until_gone(pid)


def test_a_drained_pilot_ends_the_jobs_at_hand_and_takes_no_more(world: World) -> None:
    names = ("a", "b")
    jobs = [world.submit(until_told(world, name)) for name in names]
    agent = world.start(slot=slot(3))
    for name in names:
        pid_of(world, name)
    drain = b'{"commands": [{"command": "drain"}]}'
    world.server.fault = lambda method, path: drain if path.endswith("/heartbeat") else PASS
    before = world.server.count("POST", "/heartbeat")
    wait_until(lambda: world.server.count("POST", "/heartbeat") > before + 1, "it is told")
    late = world.submit("#!/bin/sh\ntrue\n")

    let_go(world, *names)

    assert agent.wait() == 0
    for job in jobs:
        world.wait_for_state(job, "done")
    world.wait_for_state(late, "waiting")
    agent.pilot.refresh_from_db()
    assert "drained" in agent.log


def test_a_job_that_cannot_be_run_ends_the_pilot_after_the_others_had_their_say(
    world: World,
) -> None:
    good = world.submit(until_told(world, "good") + "echo 1 >out.txt\n", outputs=("out.txt",))
    agent = world.start(slot=slot(2))
    pid_of(world, "good")
    bad = world.submit("#!/bin/sh\ntrue\n", inputs={"in.txt": b"right\n"})
    stored = WorkspaceFile.objects.get(workspace=bad.workspace, path="in.txt").blob
    blob = Path(world.directory.parent / "blobs" / stored.sha256[:2] / stored.sha256)
    blob.write_bytes(b"wrong\n")
    wait_until(lambda: Attempt.objects.filter(job=bad, outcome="not_run").exists(), "it fails")
    late = world.submit("#!/bin/sh\ntrue\n")

    let_go(world, "good")

    assert agent.wait() == 1
    world.wait_for_state(good, "done")
    assert world.output(good, "out.txt") == b"1\n"
    world.wait_for_state(late, "waiting")
    agent.pilot.refresh_from_db()
    assert "not run" in agent.pilot.state_reason
    assert Attempt.objects.filter(job=bad).count() == 1


def test_in_a_bad_network_every_job_is_done_once(world: World) -> None:
    jobs = [world.submit(f"#!/bin/sh\necho {n} >out\n", outputs=("out",)) for n in range(16)]
    faults = iter([LOSE_ANSWER, PASS, PASS, HANG_UP, PASS, 503, PASS] * 8)
    world.server.fault = lambda method, path: (
        PASS if path.endswith("/register") else next(faults, PASS)
    )

    agent = world.start(slot=slot(8))

    assert agent.wait(60.0) == 0
    for number, job in enumerate(jobs):
        assert world.wait_for_state(job, "done").attempt_number == 1
        assert world.output(job, "out") == b"%d\n" % number
    assert Attempt.objects.count() == 16


def test_a_pilot_whose_time_is_over_ends_the_jobs_at_hand_and_takes_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTAGE_CORES", "3")
    # Only the pilot's own time is to be over.
    Queue.objects.update(payload_limits={"wall_s": 0, "progress_ratio": 0})
    jobs = [world.submit(until_told(world, name), wall_limit_s=10**6) for name in ("a", "b")]
    late_s = [0.0]
    control = Control(clock=lambda: time.monotonic() + late_s[0])
    agent = world.agent(control)
    codes: list[int] = []
    life = threading.Thread(target=lambda: codes.append(agent.run()))
    life.start()
    for name in ("a", "b"):
        pid_of(world, name)

    late_s[0] = 100_000.0
    before = world.server.count("POST", "/claim")
    late = world.submit("#!/bin/sh\ntrue\n")

    life.join()
    assert codes == [0]
    for job in jobs:
        world.wait_for_state(job, "failed")
    assert set(Attempt.objects.values_list("stopped_by", flat=True)) == {"pilot_time"}
    world.wait_for_state(late, "waiting")
    assert world.server.count("POST", "/claim") <= before + 1
    assert Pilot.objects.get().state == "done"
