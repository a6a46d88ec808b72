"""From the script that a batch system runs to the end of a job: the whole way, on a real portal."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.wms.pilots.agent.conftest import SECRET, World
from tests.wms.pilots.agent.faulty_proxy import PASS
from wms.pilots.models import NodeCheck, Pilot
from wms.pilots.program.bootstrap import pilot_secret
from wms.pilots.program.manifest import sha256_of, store_manifest, submission_script
from wms.pilots.protocol.registration import secret_digest


@pytest.fixture(autouse=True)
def _address(world: World, settings: Any) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "PUBLIC_URL": world.server.url}


def run(world: World, scratch: Path) -> tuple[Pilot, subprocess.CompletedProcess[str]]:
    pilot = Pilot.objects.create(
        queue=world.queue, batch="batch", secret_sha256=secret_digest(SECRET)
    )
    done = subprocess.run(
        ["sh"],
        input=submission_script(world.queue, store_manifest(world.queue)),
        cwd=scratch,
        env={
            "PATH": os.environ["PATH"],
            "TMPDIR": str(scratch),
            "PILOTAGE_CORES": "1",
            "PILOTAGE_SECRET": pilot_secret(str(pilot.uuid), SECRET),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    pilot.refresh_from_db()
    return pilot, done


def test_a_script_becomes_a_pilot_that_proves_its_node_and_runs_a_job(world: World) -> None:
    NodeCheck.objects.create(name="own", script="#!/bin/sh\necho '{\"is_ok\": true}'\n")
    job = world.submit("#!/bin/sh\ntrue\n")

    pilot, done = run(world, world.directory)

    assert done.returncode == 0, done.stdout + done.stderr
    world.wait_for_state(job, "done")
    assert [each.name for each in pilot.checks.all()][-1] == "own"
    assert (pilot.state, pilot.state_reason) == ("done", "idle")
    assert not list(world.directory.glob("pilotage-*"))
    assert SECRET not in done.stdout + done.stderr


def test_a_program_that_was_tampered_with_on_the_way_never_starts(world: World) -> None:
    job = world.submit("#!/bin/sh\ntrue\n")
    world.server.fault = lambda method, path: b"print('hello')" if "/files/" in path else PASS

    pilot, done = run(world, world.directory)

    assert done.returncode == 1
    assert "hello" not in done.stdout
    assert pilot.state == "aborted"
    assert "not run" in pilot.state_reason
    assert world.wait_for_state(job, "waiting").attempt_number == 0


def test_a_file_that_the_server_has_lost_ends_the_pilot_with_the_reason(world: World) -> None:
    own = NodeCheck.objects.create(name="own", script="#!/bin/sh\nexit 0\n")
    lost = sha256_of(own.script.encode())
    world.server.fault = lambda method, path: 404 if lost in path else PASS

    pilot, done = run(world, world.directory)

    assert done.returncode == 1
    assert f"files/{lost} is missing" in pilot.state_reason
