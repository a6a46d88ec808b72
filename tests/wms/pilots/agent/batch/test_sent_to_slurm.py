"""A pilot that the director sends to a real Slurm, there and over ssh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.batch_systems.slurm import CPUS, Slurm
from tests.batch_systems.sshd import Sshd
from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.directing import sent
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import secret_digest
from wms.sites.models import Queue
from wms.sites.selectors import element_of


@pytest.mark.parametrize("is_over_ssh", [False, True])
def test_a_pilot_in_slurm_runs_a_job_and_its_log_is_kept(
    world: World, settings, tmp_path: Path, slurm: Slurm, sshd: Sshd, is_over_ssh: bool
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "PUBLIC_URL": world.server.url}
    values = {"log_directory": str(tmp_path / "logs"), "slurm_conf": str(slurm.configuration)}
    Queue.objects.update(
        element="slurm", settings=values | ({"ssh": sshd.settings()} if is_over_ssh else {})
    )
    job = world.submit("#!/bin/sh\necho done\n")

    assert sent() == {"UW/short": 1}

    world.wait_for_state(job, "done")
    wait_until(lambda: Pilot.objects.filter(state="done").exists(), "the pilot ends")
    pilot = Pilot.objects.select_related("queue__site").get()
    assert pilot.native_id.endswith("_0")
    # Slurm's own answer: a day and the minute for the last reports, rounded up.
    assert pilot.node["time_source"] == "slurm"
    left_s = pilot.node["ends_at"] - pilot.registered_at.timestamp()
    assert pilot.queue.wall_time_s < left_s <= pilot.queue.wall_time_s + 120
    assert not pilot.checks.filter(is_ok=False).exists()
    assert "pilot" in element_of(pilot.queue).log(pilot.native_id)


#: What a payload without a fence can find out about the pilots of its account.
_LOOK_AROUND = """\
#!/bin/sh
export SLURM_CONF={configuration}
squeue --me -r -h -O ALL
for id in $(squeue --me -h -o %A); do
  scontrol show job -d $id
  scontrol write batch_script $id -
done
cat {spool}/*/slurm_script {logs}/*
for each in /proc/[0-9]*; do
  cat $each/environ $each/cmdline 2>/dev/null
done
true
"""


def test_a_payload_without_a_fence_finds_no_secret_of_a_pilot_that_waits(
    world: World, settings, tmp_path: Path, own_slurm: Slurm
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "PUBLIC_URL": world.server.url}
    logs = tmp_path / "logs"
    values = {"log_directory": str(logs), "slurm_conf": str(own_slurm.configuration)}
    Queue.objects.update(
        element="slurm", settings=values, cores=CPUS, attenuation=1.0, max_queued_pilots=3
    )
    script = _LOOK_AROUND.format(
        configuration=own_slurm.configuration, spool=own_slurm.folder / "spool", logs=logs
    )
    jobs = [world.submit(script, cores=CPUS) for _ in range(3)]

    assert sent() == {"UW/short": 3}
    wait_until(lambda: _first_done(jobs), "one of the jobs has looked around")
    found = world.log_of(_first_done(jobs)[0])

    assert "Pilotage pilot: fetches" in found
    known = set(Pilot.objects.values_list("secret_sha256", flat=True))
    words = set(re.findall(r"[A-Za-z0-9_-]{43}", found))
    assert not known & {secret_digest(each) for each in words}
    own_slurm.run("scancel", "--me")


def _first_done(jobs: list[Job]) -> list[Job]:
    return list(Job.objects.filter(pk__in=[job.pk for job in jobs], state="done")[:1])
