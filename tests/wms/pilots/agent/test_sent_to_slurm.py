"""A pilot that the director sends to a real Slurm, there and over ssh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch_systems.slurm import Slurm
from tests.batch_systems.sshd import Sshd
from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.directing import sent
from wms.pilots.models import Pilot
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
    assert "pilot" in element_of(pilot.queue).log(pilot.native_id)
