"""A pilot that the director sends to a real batch system: that of its own host."""

from __future__ import annotations

from pathlib import Path

from tests.wms.pilots.agent.conftest import World, wait_until
from tests.wms.pilots.directing import sent
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.sites.models import Queue


def test_a_pilot_gets_the_slot_of_its_queue_and_fills_it(
    world: World, settings, tmp_path: Path
) -> None:
    settings.PILOTAGE = {
        **settings.PILOTAGE,
        "PUBLIC_URL": world.server.url,
        "HOST_PILOTS_DIR": str(tmp_path / "pilots"),
    }
    Queue.objects.update(cores=3, memory_mb=3000, gpus=1)
    here = world.directory
    # Each ends only when all three are there.
    together = (
        f"#!/bin/sh\ntouch {here}/here-$PILOTAGE_JOB\n"
        f'while [ "$(ls {here} | grep -c here-)" -lt 3 ]; do sleep 0.05; done\n'
    )
    jobs = [world.submit(together, memory_mb=1000) for _ in range(2)]
    jobs += [world.submit(together, gpus=1)]

    assert sent() == {"UW/short": 1}
    for job in jobs:
        world.wait_for_state(job, "done")
    wait_until(lambda: Pilot.objects.filter(state="done").exists(), "the pilot ends")
    node = Pilot.objects.get().node
    slot = [node[name] for name in ("slot_cores", "slot_memory_mb", "slot_gpus")]
    assert slot == [3, 3000, 1]
    assert Attempt.objects.count() == 3
