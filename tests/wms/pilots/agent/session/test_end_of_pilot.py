"""End of a real pilot: pre-emption, drain, long outages, its log; on a real portal."""

from __future__ import annotations

import re
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.stored_files import log_path
from tests.wms.pilots.agent.conftest import SECRET, RunningAgent, World, wait_until
from tests.wms.pilots.agent.faulty_proxy import PASS
from wms.jobs.models import Attempt
from wms.pilots.agent.control import Control
from wms.pilots.models import Pilot, PilotLog
from wms.sites.models import Queue


def until_told(world: World) -> str:
    here = world.directory
    return (
        f"#!/bin/sh\ntrap 'touch {here}/warned; exit 0' TERM\n"
        f"touch {here}/there\nwhile [ ! -e {here}/go ]; do sleep 0.05; done\n"
        "echo result >result.txt\n"
    )


def running(world: World, **slot: int) -> RunningAgent:
    agent = world.start(slot=slot or None)
    wait_until((world.directory / "there").exists, "the payload runs")
    return agent


def log_at_server(agent: RunningAgent) -> str:
    kept = PilotLog.objects.filter(pilot=agent.pilot).first()
    if kept is None:
        return ""
    return log_path(agent.pilot.pk).read_bytes()[: kept.size_bytes].decode()


def test_a_preempted_pilot_warns_its_payload_and_gives_the_job_back(world: World) -> None:
    job = world.submit(until_told(world))
    agent = running(world)

    agent.process.send_signal(signal.SIGTERM)

    assert agent.wait() == 143
    assert (world.directory / "warned").exists()
    job = world.wait_for_state(job, "waiting")
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "done"
    assert agent.pilot.state_reason == "preempted"
    (world.directory / "go").touch()
    assert world.start().wait() == 0
    world.wait_for_state(job, "done")


def test_a_pilot_that_is_interrupted_by_hand_says_so(world: World) -> None:
    agent = world.start()
    wait_until(lambda: "registered" in agent.log, "it runs")

    agent.process.send_signal(signal.SIGINT)

    assert agent.wait() == 143
    agent.pilot.refresh_from_db()
    assert agent.pilot.state_reason == "terminated"


@pytest.mark.parametrize("longer_s", [0, 86_400])
def test_a_payload_ends_with_its_pilots_time_and_runs_again_only_where_there_is_more(
    world: World, longer_s: int
) -> None:
    Queue.objects.update(wall_time_s=3600)
    if longer_s:
        site = world.queue.site
        Queue.objects.create(site=site, name="long", element="host", wall_time_s=longer_s)
    job = world.submit(until_told(world), wall_limit_s=7200)
    later_s = [0.0]
    control = Control(clock=lambda: time.monotonic() + later_s[0])
    agent = world.agent(control)
    thread = threading.Thread(target=agent.run)
    thread.start()
    wait_until((world.directory / "there").exists, "the payload runs")

    later_s[0] = 3600.0
    control.kill((0, 0))  # no attempt of its own: it only rings the wakers
    thread.join(30)

    assert not thread.is_alive()
    assert (world.directory / "warned").exists()
    assert Pilot.objects.get().state_reason == "lifetime"
    job = world.wait_for_state(job, "waiting" if longer_s else "failed")
    assert job.attempt_number == 1
    told = re.match(
        r"the job may run for 7200 s, and its pilot had 3[56]\d\d s for it", job.state_reason
    )
    assert told, job.state_reason
    assert Attempt.objects.get().stopped_by == "pilot_time"
    assert job.needs["cpu_time_s"] == (7200 if longer_s else 500)


def test_a_pilot_whose_time_is_over_reports_its_payloads_before_it_goes(world: World) -> None:
    Queue.objects.update(wall_time_s=3600)
    job = world.submit("#!/bin/sh\necho told\nsleep 3600\n", wall_limit_s=7200)
    later_s = [0.0]
    control = Control(clock=lambda: time.monotonic() + later_s[0])
    thread = threading.Thread(target=world.agent(control).run)
    thread.start()
    wait_until(lambda: control.attempts() and world.wait_for_state(job, "running"), "it runs")

    later_s[0] = 3600.0
    control.kill((0, 0))
    thread.join(30)

    world.wait_for_state(job, "failed")
    assert world.log_of(job) == "told\n"


def test_no_job_is_taken_that_needs_more_time_than_is_left(world: World) -> None:
    Queue.objects.update(wall_time_s=50)
    job = world.submit("#!/bin/sh\ntrue\n", cpu_time_s=51)

    assert world.start().wait() == 0

    assert world.wait_for_state(job, "waiting").attempt_number == 0


def test_results_of_an_outage_arrive_when_the_server_is_back_and_only_once(world: World) -> None:
    Queue.objects.update(cores=4, memory_mb=8000)
    jobs = [world.submit(until_told(world), outputs=("result.txt",)) for _ in range(4)]
    agent = world.start(slot={"PILOTAGE_CORES": 4})
    wait_until(lambda: {world.wait_for_state(job, "running") for job in jobs}, "all run")
    world.server.stop()

    (world.directory / "go").touch()
    kept = agent.work_dir / "spool"
    wait_until(lambda: len(list(kept.glob("*/report.json"))) == 4, "all have ended")
    wait_until(lambda: not list(agent.work_dir.glob("job-*")), "nothing else is left of them")
    world.server.start()

    assert agent.wait() == 0
    for job in jobs:
        assert world.wait_for_state(job, "done").attempt_number == 1
        assert world.output(job, "result.txt") == b"result\n"
    assert Attempt.objects.count() == 4


def test_a_pilot_stays_while_a_report_is_kept_and_goes_on_then(world: World) -> None:
    first = world.submit("#!/bin/sh\ntrue\n")
    then = world.submit("#!/bin/sh\ntrue\n")
    refused: list[str] = []

    def refuse_some(method: str, path: str) -> int | str:
        """The first reports of one job are not taken, however long their repetitions take."""
        if not path.endswith(f"jobs/{first.pk}/1/report") or len(refused) == 5:
            return PASS
        refused.append(path)
        return 503

    world.server.fault = refuse_some
    agent = world.start()

    assert agent.wait() == 0

    for job in (first, then):
        assert world.wait_for_state(job, "done").attempt_number == 1


def test_a_log_arrives_while_the_pilot_runs_and_stays_when_it_dies(world: World) -> None:
    job = world.submit(until_told(world))
    agent = running(world)

    wait_until(lambda: f"job {job.pk} attempt 1" in log_at_server(agent), "the log arrives")
    agent.process.kill()
    agent.wait()

    kept = log_at_server(agent)
    assert agent.log.startswith(kept)
    assert kept.endswith("\n")


def test_the_whole_log_is_at_the_server_in_the_end(world: World) -> None:
    world.submit("#!/bin/sh\ntrue\n")

    agent = world.start()

    assert agent.wait() == 0
    assert "ends: idle" in log_at_server(agent)


def test_no_secret_is_in_the_log_or_on_the_command_line(world: World) -> None:
    job = world.submit(until_told(world))
    agent = running(world)

    arguments = Path(f"/proc/{agent.process.pid}/cmdline").read_text()
    (world.directory / "go").touch()

    assert agent.wait() == 0
    world.wait_for_state(job, "done")
    for text in (agent.log, log_at_server(agent), arguments):
        assert SECRET not in text
        assert not re.search(r"\b[0-9a-f]{64}\b", text)


def test_a_drained_pilot_ends_after_the_jobs_at_hand_with_the_reason(world: World) -> None:
    running_job = world.submit(until_told(world))
    agent = running(world)
    waiting = world.submit("#!/bin/sh\ntrue\n")
    answer = b'{"commands": [{"command": "drain", "reason": "power cut"}]}'
    world.server.fault = lambda method, path: answer if path.endswith("/heartbeat") else PASS
    heartbeats = world.server.count("POST", "/heartbeat")
    wait_until(lambda: world.server.count("POST", "/heartbeat") > heartbeats + 1, "it is told")

    (world.directory / "go").touch()

    assert agent.wait() == 0
    world.wait_for_state(running_job, "done")
    assert not Attempt.objects.filter(job=waiting).exists()
    agent.pilot.refresh_from_db()
    assert agent.pilot.state_reason == "drained: power cut"
