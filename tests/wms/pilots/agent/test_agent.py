"""The whole agent: a real process, a real portal, a real database."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.agent.faulty_proxy import HANG_UP, LOSE_ANSWER, PASS
from tests.wms.pilots.agent.payload.test_execution import wait_until_gone
from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.models import Attempt, LoggedJobEvent, WorkspaceFile
from wms.pilots.models import Pilot, PilotEvent

ANALYSIS = """#!/bin/sh
echo "arguments: $*; colour: $COLOUR"
echo "a warning" >&2
cat data/numbers.txt >result.txt
mkdir plots && echo "<svg/>" >plots/mass.svg
"""
UNTIL_TOLD = "#!/bin/sh\necho $$ >/{here}/pid\nwhile [ ! -e /{here}/go ]; do sleep 0.05; done\n"


def until_told(world: World) -> str:
    """A payload that runs until the file `go` appears; it leaves its process id in `pid`."""
    return UNTIL_TOLD.format(here=str(world.directory).lstrip("/"))


def payload_pid(world: World) -> int:
    pid_file = world.directory / "pid"
    wait_until(lambda: pid_file.exists() and pid_file.read_text().strip(), "the payload runs")
    return int(pid_file.read_text())


def let_go(world: World) -> None:
    (world.directory / "go").touch()


def events(job_id: int) -> list[str]:
    return list(
        LoggedJobEvent.objects.filter(job_id=job_id).order_by("pk").values_list("event", flat=True)
    )


def test_a_job_is_completed_with_its_outputs_and_its_logs(world: World) -> None:
    job = world.submit(
        ANALYSIS,
        inputs={"data/numbers.txt": b"1 2 3\n"},
        outputs=("result.txt", "plots/mass.svg"),
        arguments=("--seed", "a b"),
    )

    agent = world.start()

    assert agent.wait() == 0
    job = world.wait_for_state(job, "done")
    assert world.output(job, "result.txt") == b"1 2 3\n"
    assert world.output(job, "plots/mass.svg") == b"<svg/>\n"
    assert world.log_of(job) == "arguments: --seed a b; colour: blue\n"
    assert world.log_of(job, "stderr") == "a warning\n"
    assert events(job.pk) == ["enqueue", "match", "start", "complete"]


def test_what_the_job_used_and_where_it_ran_is_known(world: World) -> None:
    job = world.submit("#!/bin/sh\nsleep 0.2\n")

    agent = world.start()
    agent.wait()

    attempt = Attempt.objects.get(job=job)
    agent.pilot.refresh_from_db()
    assert (attempt.exit_code, attempt.signal) == (0, None)
    assert 0.2 <= attempt.wall_s < 20
    assert attempt.max_rss_mb > 0
    assert agent.pilot.node["cores"] >= 1
    assert agent.pilot.node["hostname"] == attempt.host


def test_one_pilot_runs_many_jobs_and_ends_when_there_are_no_more(world: World) -> None:
    jobs = [world.submit(f"#!/bin/sh\necho {number}\n") for number in range(3)]

    agent = world.start()

    assert agent.wait() == 0
    assert [world.log_of(job) for job in jobs] == ["0\n", "1\n", "2\n"]
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "done"
    assert PilotEvent.objects.filter(pilot=agent.pilot, event="end").get().reason == "idle"
    assert not agent.work_dir.exists()


def test_the_exit_code_of_a_failing_payload_fails_the_job(world: World) -> None:
    job = world.submit("#!/bin/sh\necho partial >result.txt\nexit 9\n", outputs=("result.txt",))

    world.start().wait()

    job = world.wait_for_state(job, "failed")
    assert "exit code 9" in job.state_reason
    assert not WorkspaceFile.objects.filter(workspace=job.workspace, path="result.txt").exists()


def test_a_missing_output_is_named(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n", outputs=("result.txt",))

    world.start().wait()

    assert "result.txt" in world.wait_for_state(job, "failed").state_reason


def test_of_very_many_missing_outputs_some_are_named(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n", outputs=tuple(f"result-{n}" for n in range(1001)))

    agent = world.start()

    assert agent.wait() == 0
    job = world.wait_for_state(job, "failed")
    assert job.attempt_number == 1
    assert "result-0," in job.state_reason


def test_an_executable_without_a_first_line_is_explained(world: World) -> None:
    job = world.submit("echo hello\n")

    world.start().wait()

    assert "first line #!" in world.wait_for_state(job, "failed").state_reason


def test_the_wall_clock_limit_ends_the_payload_and_its_output_is_kept(world: World) -> None:
    job = world.submit("#!/bin/sh\necho before\nsleep 100\n", wall_limit_s=1)

    world.start().wait()

    job = world.wait_for_state(job, "failed")
    assert job.state_reason.startswith("wall-clock limit")
    assert world.log_of(job) == "before\n"


def test_an_output_that_is_too_large_is_refused_with_the_reason(world: World, settings) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_UPLOAD_BYTES": 1000}
    job = world.submit(
        "#!/bin/sh\nhead -c 3000000 /dev/zero >result.bin\n", outputs=("result.bin",)
    )

    world.start().wait()

    assert "larger than 1000 bytes" in world.wait_for_state(job, "failed").state_reason


def test_a_killed_job_is_stopped_by_the_answer_to_a_heartbeat(world: World) -> None:
    job = world.submit(until_told(world))
    agent = world.start()
    pid = payload_pid(world)

    operations.kill_jobs([job.pk], actor=Actor.person(world.alice), reason="a mistake")

    wait_until_gone(pid)
    assert agent.wait() == 0
    assert world.wait_for_state(job, "killed").state_reason == "a mistake"
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "done"


def test_a_held_job_is_stopped_and_begins_anew_in_the_same_pilot_when_it_is_released(
    world: World,
) -> None:
    job = world.submit(until_told(world))
    agent = world.start()
    pid = payload_pid(world)
    world.wait_for_state(job, "running")
    operations.hold_jobs([job.pk], actor=Actor.person(world.alice), reason="wait")

    wait_until_gone(pid)
    assert world.wait_for_state(job, "held").state_reason == "wait"
    operations.release_jobs([job.pk], actor=Actor.person(world.alice))
    world.wait_for_state(job, "running")
    attempts = list(job.attempts.order_by("number").values_list("outcome", "pilot_id"))
    assert attempts == [("killed", agent.pilot.pk), ("", agent.pilot.pk)]


def test_a_wrong_secret_gets_nothing(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")

    agent = world.start(secret="guessed")

    assert agent.wait() == 77
    assert "refused the registration" in agent.log
    assert world.wait_for_state(job, "waiting").attempt_number == 0
    assert not agent.work_dir.exists()


def test_a_used_secret_gets_nothing(world: World) -> None:
    world.submit(until_told(world))
    first = world.start()
    payload_pid(world)

    second = world.start(pilot=first.pilot)

    assert second.wait() == 77
    let_go(world)
    assert first.wait() == 0


def test_a_job_whose_claim_answer_was_lost_is_given_again(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    world.server.fault = lambda method, path: (
        LOSE_ANSWER
        if path.endswith("/claim") and world.server.count("POST", "/claim") == 1
        else PASS
    )

    world.start().wait()

    assert world.wait_for_state(job, "done").attempt_number == 1
    assert events(job.pk) == ["enqueue", "match", "start", "complete"]


@pytest.mark.parametrize("ending", ["/register", "/report", "/files/output/result.txt"])
def test_any_other_lost_answer_doubles_nothing(world: World, ending: str) -> None:
    job = world.submit("#!/bin/sh\necho 1 >result.txt\n", outputs=("result.txt",))
    seen: set[str] = set()

    def lose_first(method: str, path: str) -> str:
        is_first = path.endswith(ending) and path not in seen
        seen.add(path)
        return LOSE_ANSWER if is_first else PASS

    world.server.fault = lose_first

    assert world.start().wait() == 0
    assert world.wait_for_state(job, "done").attempt_number == 1
    assert world.output(job, "result.txt") == b"1\n"
    assert events(job.pk) == ["enqueue", "match", "start", "complete"]


def test_a_server_that_goes_and_comes_back_costs_nothing(world: World) -> None:
    job = world.submit(until_told(world) + "echo 1 >result.txt\n", outputs=("result.txt",))
    agent = world.start()
    payload_pid(world)

    world.server.stop()
    let_go(world)
    wait_until(lambda: "next try in" in agent.log, "the agent notices")
    world.server.start()

    assert agent.wait() == 0
    assert world.wait_for_state(job, "done").attempt_number == 1
    assert world.output(job, "result.txt") == b"1\n"


def test_a_server_in_trouble_is_asked_again(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    faults = iter([503, HANG_UP, 500, 502, 429, PASS, 504, HANG_UP])
    world.server.fault = lambda method, path: (
        PASS if path.endswith("/heartbeat") else next(faults, PASS)
    )

    assert world.start().wait() == 0
    world.wait_for_state(job, "done")


def test_a_pilot_that_the_server_has_given_up_stops_at_once(world: World) -> None:
    world.submit(until_told(world))
    agent = world.start()
    pid = payload_pid(world)

    Pilot.objects.filter(pk=agent.pilot.pk).update(token_sha256="0" * 64)

    assert agent.wait() == 77
    wait_until_gone(pid)


def test_sigterm_gives_the_job_back_and_ends_the_pilot_within_ten_seconds(world: World) -> None:
    job = world.submit(until_told(world))
    agent = world.start()
    pid = payload_pid(world)

    started = time.monotonic()
    agent.process.send_signal(signal.SIGTERM)

    assert agent.wait() == 143
    assert time.monotonic() - started < 10
    wait_until_gone(pid)
    job = world.wait_for_state(job, "waiting")
    assert "terminated" in Attempt.objects.get(job=job).reason
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "done"
    assert not agent.work_dir.exists()


def test_sigterm_ends_the_pilot_even_when_the_server_is_away(world: World) -> None:
    world.submit(until_told(world))
    agent = world.start()
    pid = payload_pid(world)
    world.server.stop()

    started = time.monotonic()
    agent.process.send_signal(signal.SIGTERM)

    assert agent.wait() == 143
    assert time.monotonic() - started < 12
    wait_until_gone(pid)
    assert not agent.work_dir.exists()
    world.server.start()


def test_a_murdered_pilot_leaves_no_payload_behind(world: World) -> None:
    world.submit(until_told(world))
    agent = world.start()
    pid = payload_pid(world)

    agent.process.kill()

    wait_until_gone(pid)


def test_the_payload_finds_neither_secret_nor_token(world: World) -> None:
    job = world.submit(
        "#!/bin/sh\n"
        "env; cat /proc/$$/cmdline /proc/$PPID/cmdline /proc/$PPID/environ | tr '\\0' '\\n'\n"
        "ls -l /proc/$$/fd; grep -rl a-secret-that .. ; echo over\n"
    )

    agent = world.start()
    agent.wait()

    seen = world.log_of(world.wait_for_state(job, "done"))
    assert seen.endswith("over\n")
    assert "a-secret" not in seen
    assert not re.search(r"\b[0-9a-f]{64}\b", seen)
    assert not re.search(r"[0-9] -> socket:", seen)
    assert "PILOTAGE_INDEX" not in seen.split("agent.pyz")[0]
    assert "a-secret" not in agent.log


def test_an_input_that_was_damaged_on_the_way_is_not_used(world: World) -> None:
    job = world.submit("#!/bin/sh\ncat in.txt\n", inputs={"in.txt": b"right\n"})
    stored = WorkspaceFile.objects.get(workspace=job.workspace, path="in.txt").blob
    store = Path(world.directory.parent / "blobs" / stored.sha256[:2] / stored.sha256)
    store.write_bytes(b"wrong\n")

    agent = world.start()

    assert agent.wait() == 1
    assert [(each.outcome, each.number) for each in Attempt.objects.filter(job=job)] == [
        ("not_run", 1)
    ]
    assert "expected SHA-256" in Attempt.objects.get(job=job).reason
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "failed"
    assert "SHA-256" in agent.pilot.state_reason
