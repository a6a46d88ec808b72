"""Slurm ends a pilot whose payload runs: the job pays nothing, and runs elsewhere at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch_systems.slurm import Slurm
from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.directing import sent
from wms.jobs.models import Attempt, JobEvent
from wms.pilots.models import Pilot
from wms.sites.models import Queue

#: What payloads make of the SIGTERM that Slurm sends to all processes of a job.
_MANNERS = {
    "ends by the signal": "",
    "ends as if all were well": "trap 'exit 0' TERM",
    "ends with a code of its own": "trap 'exit 3' TERM",
    "passes it over": "trap '' TERM",
}


@pytest.mark.parametrize("manner", _MANNERS)
def test_a_job_whose_pilot_slurm_cancels_runs_again_at_once_and_pays_nothing(
    world: World, settings, tmp_path: Path, slurm: Slurm, manner: str
) -> None:
    settings.PILOTAGE = {
        **settings.PILOTAGE, "PUBLIC_URL": world.server.url, "RESCHEDULE_PAUSES_S": [600],
    }  # fmt: skip
    values = {"log_directory": str(tmp_path / "logs"), "slurm_conf": str(slurm.configuration)}
    Queue.objects.update(element="slurm", settings=values)
    there, go = tmp_path / "there", tmp_path / "go"
    tmp_path.chmod(0o755)
    job = world.submit(
        f"#!/bin/sh\n{_MANNERS[manner]}\ntouch {there}\nwhile [ ! -e {go} ]; do sleep 0.05; done\n"
    )
    left = job.max_attempts
    assert sent() == {"UW/short": 1}
    wait_until(there.exists, "the payload runs")
    world.wait_for_state(job, "running")
    first = Pilot.objects.get()

    slurm.run("scancel", first.native_id)

    job = world.wait_for_state(job, "waiting", "received", "failed", "done")
    assert (job.state, job.not_before) == ("waiting", None)
    assert job.max_attempts - job.attempt_number == left
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.stopped_by) == ("lost", "preemption")
    assert attempt.wall_s is not None
    wait_until(lambda: Pilot.objects.filter(state="done").exists(), "the pilot says good-bye")
    first.refresh_from_db()
    assert first.state_reason == "preempted"

    go.touch()
    assert sent() == {"UW/short": 1}
    world.wait_for_state(job, "done")
    assert not JobEvent.objects.filter(job=job, event="late").exists()
