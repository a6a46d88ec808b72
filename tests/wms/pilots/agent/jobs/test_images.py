"""Jobs with images and real pilots, on a node that has Apptainer and on one where it fails."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch_systems.apptainer import apptainer_node, inside
from tests.batch_systems.container_images import make_file, make_folder
from tests.batch_systems.services import Unavailable
from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.fence.fencing import USER
from wms.jobs.models import Attempt, Job
from wms.pilots.models import PilotCheck
from wms.sites.models import Queue

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(world: World) -> Iterator[Path]:
    """A node with Apptainer for the pilots, and a folder with an image, `plain.sif`."""
    try:
        root = apptainer_node()
    except Unavailable as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="pilotage-node-", dir="/var/tmp"))
    folder.chmod(0o755)
    make_folder(folder / "plain", root)
    make_file(folder / "plain.sif", folder / "plain", root)
    world.uid = pwd.getpwnam(USER).pw_uid
    world.directory = folder
    world.python = [*inside(root, [folder], uid=world.uid), "python3"]
    Queue.objects.update(tags=["apptainer"])
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def with_image(world: World, script: str, image: str, content: bytes | None = None) -> Job:
    return world.submit(
        script,
        inputs={image: content} if content is not None else None,
        directives={"container_image": image},
        tags=("apptainer",),
    )


def test_a_job_runs_in_the_image_of_its_workspace(world: World, node: Path) -> None:
    script = "#!/bin/sh\ncat /etc/image\nls\n"
    job = with_image(world, script, "tools.sif", (node / "plain.sif").read_bytes())

    world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert (job.state, world.log_of(job)) == ("done", "an image\nrun.sh\n")
    assert PilotCheck.objects.get(name="containers").is_ok


def test_an_image_at_fault_fails_its_job_and_not_the_pilot(world: World, node: Path) -> None:
    broken = with_image(world, "#!/bin/sh\ntrue\n", "broken.sif", b"no image")
    missing = with_image(world, "#!/bin/sh\ntrue\n", "/cvmfs/none")
    other = world.submit("#!/bin/sh\ntrue\n")

    agent = world.start()

    for job in (broken, missing):
        job = world.wait_for_state(job, "done", "failed")
        assert (job.state, job.state_cause) == ("failed", "image")
    world.wait_for_state(other, "done")
    assert agent.wait() == 0


def test_a_pilot_that_starts_no_containers_takes_only_other_jobs(world: World) -> None:
    if os.geteuid() != 0 and shutil.which("apptainer"):
        pytest.skip("containers are started here")
    Queue.objects.update(tags=["apptainer"])
    job = with_image(world, "#!/bin/sh\ntrue\n", "/cvmfs/none")
    other = world.submit("#!/bin/sh\ntrue\n")

    agent = world.start()

    world.wait_for_state(other, "done")
    assert agent.wait() == 0
    job.refresh_from_db()
    assert job.state == "waiting"
    assert not Attempt.objects.filter(job=job).exists()
    assert not PilotCheck.objects.get(name="containers").is_ok
