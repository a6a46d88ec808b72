"""The level of pilots in a real Slurm: reached while jobs wait, taken back when none does."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.batch_systems.slurm import CPUS, Slurm
from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.directing import direct, poll, reasons_of
from wms.core.actors import Actor
from wms.jobs.models import Job
from wms.jobs.operations import kill_jobs
from wms.pilots.models import Pilot
from wms.sites.models import Queue

#: Slurm has room for two such pilots; others wait.
CORES = CPUS // 2


@pytest.fixture
def queue(world: World, settings, tmp_path: Path, own_slurm: Slurm) -> Queue:
    """A queue with a level of three, behind which two pilots can run."""
    settings.PILOTAGE = {**settings.PILOTAGE, "PUBLIC_URL": world.server.url}
    logs = {"log_directory": str(tmp_path / "logs"), "slurm_conf": str(own_slurm.configuration)}
    Queue.objects.update(
        element="slurm", settings=logs, cores=CORES, max_pilots=10, max_queued_pilots=3,
        attenuation=1.0, removal_wait_s=60, max_removals=2,
    )  # fmt: skip
    return Queue.objects.select_related("site").get()


def _states(now: datetime) -> list[str]:
    """What Slurm says of the living pilots, in the order of their submission."""
    poll(now)
    living = Pilot.objects.filter(state__in=["queued", "running"])
    return list(living.order_by("pk").values_list("batch_state", flat=True))


def test_pilots_wait_in_slurm_up_to_the_level_and_only_those_that_wait_are_taken_back(
    world: World, queue: Queue, own_slurm: Slurm, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    script = f"#!/bin/sh\nwhile [ ! -e {end} ]; do sleep 0.1; done\n"
    jobs = [world.submit(script, cores=CORES) for _ in range(9)]
    now = timezone.now()

    # Jobs appear: three are sent, and as two of them start, two more.
    assert direct(now)["UW/short"].submitted == 3
    assert direct(now) == {}
    wait_until(lambda: Pilot.objects.filter(state="running").count() == 2, "two pilots call in")
    # One without a job would end soon.
    wait_until(lambda: Job.objects.filter(state="waiting").count() == 7, "both have jobs")
    assert direct(now)["UW/short"].submitted == 2
    wait_until(
        lambda: _states(now) == ["running", "running", "queued", "queued", "queued"],
        "three pilots wait in Slurm",
    )
    assert any("at most 3" in reason for reason in reasons_of(queue))

    # The jobs that wait are gone: pilots are taken back from Slurm two in a turn, the last first.
    running = list(Pilot.objects.filter(state="running").order_by("pk"))
    waiting = [job.pk for job in Job.objects.filter(state="waiting")]
    kill_jobs(waiting, actor=Actor.system("test"), reason="not needed any more")
    later = [direct(now + timedelta(minutes=minute)) for minute in range(6)]

    removed = [turn["UW/short"].removed for turn in later if turn]
    assert removed == [2, 1]
    assert _states(now) == ["running", "running"]
    in_slurm = own_slurm.run("squeue", "-h", "-r", "-o", "%F_%K").split()
    assert {pilot.native_id for pilot in running} == set(in_slurm)

    # Those that run are left to their jobs.
    end.touch()
    for job in jobs:
        if job.pk not in waiting:
            world.wait_for_state(job, "done")
    wait_until(lambda: Pilot.objects.filter(state="done").count() == 2, "both pilots end")
