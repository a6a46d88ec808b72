"""Validation of the node before the first job, and again while jobs run."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.wms.pilots.agent.conftest import SECRET, RunningAgent, World, wait_until
from wms.core.actors import Actor
from wms.jobs.models import Attempt
from wms.pilots.models import NodeCheck, Pilot, PilotCheck, PilotManifest
from wms.pilots.program.manifest import store_manifest
from wms.pilots.protocol.registration import secret_digest
from wms.pilots.services import drain_pilot
from wms.pilots.testing.selectors import Verdict, verdict_of
from wms.sites.models import Queue

GOOD = b"""#!/bin/sh
echo "some words first"
echo '{"is_ok": true, "metrics": {"speed": 12.5}}'
"""
BAD = b"""#!/bin/sh
echo '{"is_ok": false, "kind": "config", "reason": "no compiler"}'
"""


def check(name: str, script: bytes, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "builtin": False,
        "sha256": hashlib.sha256(script).hexdigest(),
        "size_bytes": len(script),
        "time_limit_s": 20,
        "period_s": None,
        "settings": {},
        **changes,
    }


def start(world: World, *checks: dict[str, Any], scripts: tuple[bytes, ...] = ()) -> RunningAgent:
    return world.start(manifest={"checks": list(checks), "settings": {}}, scripts=scripts)


def told(agent: RunningAgent) -> list[tuple[str, bool, str]]:
    found = PilotCheck.objects.filter(pilot=agent.pilot).order_by("pk")
    return list(found.values_list("name", "is_ok", "reason"))


def test_the_built_in_checks_pass_here_and_jobs_run_after_them(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    world.queue.platform = ""
    stored = PilotManifest.objects.get(pk=store_manifest(world.queue))

    agent = world.start(manifest=json.loads(bytes(stored.content)))

    assert agent.wait() == 0, agent.log
    world.wait_for_state(job, "done")
    assert told(agent) == [
        (name, True, "")
        for name in ("disk", "memory", "clock", "cpus", "scratch", "apptainer", "gpu")
    ]
    agent.pilot.refresh_from_db()
    assert agent.pilot.validation_s > 0
    assert agent.pilot.totals["validation_s"] > 0
    metrics = {each.name: each.metrics for each in agent.pilot.checks.all()}
    assert metrics["cpus"]["cpus"] >= 1
    assert abs(metrics["clock"]["clock_skew_s"]) <= 2
    assert agent.pilot.published["apptainer"].keys() >= {"Available"}
    assert set(agent.pilot.published) == {"apptainer", "gpu"}


@pytest.mark.parametrize(
    ("name", "asked", "reason"),
    [
        ("disk", {"least_mb": 10**9}, "MB of disk are free, needed are 1000000000"),
        ("memory", {"least_mb": 10**9}, "MB of memory are free, needed are 1000000000"),
        ("clock", {"most_skew_s": -1}, "allowed are -1 s"),
        ("cpus", {"least": 10**6}, "CPUs may be used, needed are 1000000"),
        ("platform", {"platforms": ["vax-vms"]}, "expected is vax-vms"),
        ("software", {"directories": ["/nowhere/at/all"]}, "/nowhere/at/all cannot be used"),
        ("network", {"addresses": ["127.0.0.1:1"]}, "no connection to 127.0.0.1:1"),
    ],
)
def test_a_failed_check_ends_the_pilot_before_it_takes_a_job(
    world: World, name: str, asked: dict[str, Any], reason: str
) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    own = {"name": name, "builtin": True, "time_limit_s": 20, "settings": asked}

    agent = start(world, own)

    assert agent.wait() == 1
    assert world.wait_for_state(job, "waiting").attempt_number == 0
    [(told_name, is_ok, told_reason)] = told(agent)
    assert (told_name, is_ok) == (name, False)
    assert reason in told_reason
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "failed"
    assert agent.pilot.state_reason == f"unfit: check {name}: {told_reason}"


def test_a_disk_that_cannot_be_written_fails(world: World) -> None:
    # What the check wants to write into is a directory.
    work_dir = world.directory / "work-0"
    own = {"name": "scratch", "builtin": True, "time_limit_s": 20}
    in_the_way = f"#!/bin/sh\nmkdir {work_dir}/scratch-check\necho '{{\"is_ok\": true}}'\n".encode()

    agent = start(world, check("a", in_the_way), own, scripts=(in_the_way,))

    assert agent.wait() == 1
    assert "cannot be written" in told(agent)[1][2]


def test_checks_run_in_their_order_up_to_the_first_that_fails(world: World) -> None:
    agent = start(world, check("a", GOOD), check("b", BAD), check("c", GOOD), scripts=(GOOD, BAD))

    assert agent.wait() == 1
    assert told(agent) == [("a", True, ""), ("b", False, "no compiler")]
    assert PilotCheck.objects.get(name="a").metrics == {"speed": 12.5}
    assert PilotCheck.objects.get(name="b").kind == "config"


def test_a_test_pilot_runs_all_checks_and_takes_no_job(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    Queue.objects.update(hold_after_failure_s=600)
    pilot = Pilot.objects.create(
        queue=world.queue, batch="batch", secret_sha256=secret_digest(SECRET), test="checks"
    )
    manifest = {
        "checks": [check("a", BAD), check("b", GOOD)], "settings": {}, "runs_all_checks": True,
    }  # fmt: skip

    agent = world.start(pilot=pilot, manifest=manifest, scripts=(BAD, GOOD))

    assert agent.wait() == 1
    assert told(agent) == [("a", False, "no compiler"), ("b", True, "")]
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "failed"
    assert verdict_of(agent.pilot, list(agent.pilot.checks.all())) == Verdict.UNFIT
    assert world.wait_for_state(job, "waiting").attempt_number == 0


def test_a_test_pilot_on_a_fit_node_ends_by_itself(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    pilot = Pilot.objects.create(
        queue=world.queue,
        batch="batch",
        secret_sha256=secret_digest(SECRET),
        test="checks",
        drain_reason="a test",
    )

    agent = world.start(
        pilot=pilot, manifest={"checks": [check("a", GOOD)], "settings": {}}, scripts=(GOOD,)
    )

    assert agent.wait() == 0
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "done"
    assert verdict_of(agent.pilot, list(agent.pilot.checks.all())) == Verdict.FIT
    assert world.wait_for_state(job, "waiting").attempt_number == 0


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (b"#!/bin/sh\nexec sleep 100\n", "not over after 1 s"),
        (b"#!/bin/sh\necho broken\nexit 3\n", "exit code 3: broken"),
        (b"#!/bin/sh\nkill -9 $$\n", "ended by signal 9"),
        (b"#!/bin/sh\necho fine\n", "its last line is no result: fine"),
        (b'#!/bin/sh\necho \'{"is_ok": "yes"}\'\n', "its last line is no result"),
        (b"#!/bin/sh\n", "its last line is no result"),
        (b"#!/nowhere/at/all\n", "cannot be run"),
    ],
    ids=["time limit", "exit code", "signal", "words", "no flag", "nothing", "no interpreter"],
)
def test_a_check_without_a_good_result_has_failed(world: World, script: bytes, reason: str) -> None:
    agent = start(world, check("own", script, time_limit_s=1), scripts=(script,))

    assert agent.wait() == 1
    assert reason in told(agent)[0][2]


def test_a_check_is_given_its_settings_and_the_slot_and_nothing_secret(world: World) -> None:
    seen = world.directory / "seen"
    script = f"#!/bin/sh\n(cat; echo; env) >{seen}\necho '{{\"is_ok\": true}}'\n".encode()

    agent = start(world, check("own", script, settings={"compiler": "gcc"}), scripts=(script,))

    assert agent.wait() == 0
    given = json.loads(seen.read_text().splitlines()[0])
    assert given["settings"] == {"compiler": "gcc"}
    assert given["name"] == "own"
    assert given["slot"]["cores"] == 1
    assert given["server"] == world.server.url
    assert "a-secret" not in seen.read_text()


def test_a_script_that_was_changed_after_it_was_fetched_is_not_run(world: World) -> None:
    here = world.directory
    other = f"#!/bin/sh\ntouch {here}/ran\n".encode()
    first = (
        "#!/bin/sh\n"
        f"cat >{here}/work-0/files/{hashlib.sha256(GOOD).hexdigest()} <<'END'\n"
        f"{other.decode()}END\necho '{{\"is_ok\": true}}'\n"
    ).encode()

    agent = start(world, check("a", first), check("b", GOOD), scripts=(first, GOOD))

    assert agent.wait() == 1
    assert "manifest" in told(agent)[1][2]
    assert not (here / "ran").exists()


def test_a_file_that_the_manifest_does_not_list_stops_the_pilot(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")

    agent = start(world, check("a", GOOD), scripts=(GOOD, BAD))

    assert agent.wait() == 1
    agent.pilot.refresh_from_db()
    assert "files" in agent.pilot.state_reason
    assert world.wait_for_state(job, "waiting").attempt_number == 0


def test_a_manifest_that_was_changed_after_it_was_fetched_is_not_followed(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    manifest = {"checks": [], "settings": {}}

    agent = world.start(manifest=manifest, sha256="0" * 64)

    assert agent.wait() == 1
    assert "manifest" in agent.log
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "aborted"
    assert "manifest" in agent.pilot.state_reason
    assert world.wait_for_state(job, "waiting").attempt_number == 0


def test_an_unfit_node_keeps_its_slot_and_takes_no_job(world: World) -> None:
    Queue.objects.update(hold_after_failure_s=600)
    job = world.submit("#!/bin/sh\ntrue\n")

    agent = start(world, check("own", BAD), scripts=(BAD,))

    wait_until(lambda: "the slot is kept for" in agent.log, "it says so")
    heartbeats = world.server.count("POST", "/heartbeat")
    wait_until(lambda: world.server.count("POST", "/heartbeat") > heartbeats + 1, "it still beats")
    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "running"
    assert agent.pilot.is_draining
    assert world.server.count("POST", "/claim") == 0
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait() == 1
    agent.pilot.refresh_from_db()
    assert agent.pilot.state_reason == "unfit: check own: no compiler"
    assert world.wait_for_state(job, "waiting").attempt_number == 0


def test_a_pilot_that_keeps_the_slot_of_an_unfit_node_can_be_drained(world: World) -> None:
    Queue.objects.update(hold_after_failure_s=600)
    agent = start(world, check("own", BAD), scripts=(BAD,))
    wait_until(lambda: "the slot is kept for" in agent.log, "it says so")

    drain_pilot(agent.pilot.uuid, actor=Actor.system("test"), reason="node repaired")

    assert agent.wait() == 1
    agent.pilot.refresh_from_db()
    assert (agent.pilot.state, agent.pilot.drain_reason) == ("failed", "node repaired")


def test_a_check_that_fails_while_a_job_runs_drains_the_pilot(world: World) -> None:
    here = world.directory
    script = (
        f"#!/bin/sh\n[ -e {here}/broken ] || {{ echo '{{\"is_ok\": true}}'; exit; }}\n"
        'echo \'{"is_ok": false, "reason": "disk gone"}\'\n'
    ).encode()
    running = world.submit(
        f"#!/bin/sh\ntouch {here}/there\nwhile [ ! -e {here}/go ]; do sleep 0.05; done\n"
    )
    agent = start(world, check("own", script, period_s=0.2), scripts=(script,))
    wait_until((here / "there").exists, "the job runs")
    waiting = world.submit("#!/bin/sh\ntrue\n")

    (here / "broken").touch()
    wait_until(lambda: len(told(agent)) == 2, "the server knows")
    assert world.wait_for_state(running, "running")
    (here / "go").touch()

    assert agent.wait() == 1
    world.wait_for_state(running, "done")
    assert not Attempt.objects.filter(job=waiting).exists()
    assert told(agent)[1] == ("own", False, "disk gone")
    agent.pilot.refresh_from_db()
    assert agent.pilot.state_reason == "unfit: check own: disk gone"


def test_what_an_administrator_adds_for_a_site_runs_in_its_pilots(world: World) -> None:
    NodeCheck.objects.create(name="own", site=world.queue.site, script=BAD.decode())
    stored = PilotManifest.objects.get(pk=store_manifest(world.queue))
    manifest = json.loads(bytes(stored.content))

    agent = world.start(manifest=manifest, scripts=(BAD,))

    assert agent.wait() == 1
    assert told(agent)[-1] == ("own", False, "no compiler")


def test_nothing_of_a_check_is_left(world: World) -> None:
    pid = world.directory / "pid"
    script = f"#!/bin/sh\nsleep 1000 & echo $! >{pid}\necho '{{\"is_ok\": true}}'\n".encode()

    agent = start(world, check("own", script), scripts=(script,))

    assert agent.wait() == 0
    stat = Path(f"/proc/{pid.read_text().strip()}/stat")
    wait_until(lambda: not stat.exists() or ") Z" in stat.read_text(), "the child is gone")
