"""Jobs behind a fence, from the portal to the worker node and back."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import factories
from tests.wms.pilots.agent.conftest import World, wait_until
from wms.core.actors import Actor
from wms.jobs import operations
from wms.jobs.models import Attempt, Job, JobEvent, Stream
from wms.pilots.agent.session.fence_selection import best_fence
from wms.pilots.models import Pilot
from wms.sites.models import Queue


@pytest.fixture
def fence(world: World, tmp_path: Path, fence_programs: None) -> str:
    """The best fence of this host, for what the queue leaves open."""
    name = best_fence(tmp_path).name
    if name == "none":
        pytest.skip("no fence works on this host")
    Queue.objects.update(fence="auto")
    return name


def test_a_fenced_job_gets_its_inputs_and_its_outputs_come_back(world: World, fence: str) -> None:
    job = world.submit(
        '#!/bin/sh\ncat in/data.txt >out.txt; pwd >>out.txt; echo "$COLOUR" | tee /dev/stderr\n'
        'echo "Phase = 3" >"$PILOTAGE_JOB_ATTRIBUTES"; sleep 1\n',
        inputs={"in/data.txt": b"hello\n"},
        outputs=("out.txt",),
    )

    agent = world.start()

    assert agent.wait() == 0
    assert world.wait_for_state(job, "done").attempt_number == 1
    assert world.output(job, "out.txt") == b"hello\n/job\n"
    assert world.log_of(job) == world.log_of(job, "stderr") == "blue\n"
    assert JobEvent.objects.filter(job=job, event="update").exists()
    agent.pilot.refresh_from_db()
    assert agent.pilot.node["fence"] == fence


def test_a_fenced_job_reads_and_writes_the_folders_that_its_queue_shares(
    world: World, fence: str
) -> None:
    for name, mode in (("software", 0o755), ("export", 0o1777)):
        (world.directory / name).mkdir()
        (world.directory / name).chmod(mode)
    (world.directory / "software/version").write_text("7\n")
    shared = [
        {"path": str(world.directory / "software")},
        {"path": str(world.directory / "export"), "is_writable": True},
    ]
    Queue.objects.update(shared_folders=shared)
    job = world.submit(
        f"#!/bin/sh\ncat {world.directory}/software/version >{world.directory}/export/found\n"
        f"touch {world.directory}/software/new || echo read-only\n"
    )

    assert world.start().wait() == 0

    world.wait_for_state(job, "done")
    assert (world.directory / "export/found").read_text() == "7\n"
    assert "read-only" in world.log_of(job)
    assert not (world.directory / "software/new").exists()


def test_a_fenced_job_sees_neither_pilot_nor_secrets(world: World, fence: str) -> None:
    secret = world.directory / "secret"
    secret.write_text("hush")
    job = world.submit(
        f"#!/bin/sh\ncat {secret}; ls {world.directory} | head; ls /proc | grep -c '^[0-9]'\n"
    )

    assert world.start().wait() == 0

    world.wait_for_state(job, "done")
    seen = world.log_of(job)
    assert "hush" not in seen
    assert "work" not in seen
    assert int(seen.split()[-1]) < 10


def test_a_program_that_the_fence_hides_is_told(world: World, fence: str) -> None:
    program = world.directory / "program"
    shutil.copy("/bin/true", program)
    program.chmod(0o755)
    job = world.submit("#!/bin/sh\ntrue\n")
    factories.describe(Job.objects.filter(pk=job.pk), executable=str(program))

    assert world.start().wait() == 0

    reason = world.wait_for_state(job, "failed").state_reason
    assert "not visible" in reason


def test_a_queue_without_a_fence_is_shown(world: World) -> None:
    agent = world.start()

    assert agent.wait() == 0
    assert Pilot.objects.get(pk=agent.pilot.pk).node["fence"] == "none"


def test_a_pilot_whose_fence_does_not_work_takes_no_job(world: World) -> None:
    if shutil.which("apptainer"):
        pytest.skip("here Apptainer is installed")
    Queue.objects.update(fence="apptainer", hold_after_failure_s=0)
    job = world.submit("#!/bin/sh\ntrue\n")

    agent = world.start()
    agent.wait()

    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "failed"
    assert "apptainer" in agent.pilot.state_reason
    assert not Attempt.objects.exists()
    world.wait_for_state(job, "waiting")


_ASK_THE_PORTAL = """#!/usr/bin/python3
import os, socket, urllib.error, urllib.request
try:
    urllib.request.urlopen(os.environ.get("PILOTAGE_PORTAL", "http://127.0.0.1:{port}"), timeout=30)
except urllib.error.HTTPError:
    print("portal")
except OSError as error:
    print(error.reason.strerror)
else:
    print("portal")
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize(
    ("network", "answer"), [("portal", "portal"), ("none", "Connection refused")]
)
def test_a_queue_says_what_its_payloads_reach_of_the_network(
    world: World, fence: str, network: str, answer: str
) -> None:
    Queue.objects.update(network=network)
    port = urlsplit(world.server.url).port
    job = world.submit(_ASK_THE_PORTAL.replace("{port}", str(port)))

    agent = world.start()
    world.wait_for_state(job, "done")

    assert world.log_of(job) == f"{answer}\nNetwork is unreachable\n"
    wait_until(
        lambda: Pilot.objects.get(pk=agent.pilot.pk).node.get("network") == network, "it is told"
    )


def test_a_pilot_that_cannot_give_payloads_the_wanted_network_takes_no_job(world: World) -> None:
    Queue.objects.update(network="none", hold_after_failure_s=0)
    job = world.submit("#!/bin/sh\ntrue\n")

    agent = world.start()
    agent.wait()

    agent.pilot.refresh_from_db()
    assert agent.pilot.state == "failed"
    assert "network 'none'" in agent.pilot.state_reason
    assert not Attempt.objects.exists()
    world.wait_for_state(job, "waiting")


def test_output_is_seen_while_the_job_runs(world: World, fence: str) -> None:
    job = world.submit("#!/bin/sh\necho early; echo trouble >&2; sleep 60\n")
    agent = world.start()

    wait_until(
        lambda: (
            set(Stream.objects.filter(size_bytes__gt=0).values_list("kind", flat=True))
            == {"stdout", "stderr"}
        ),
        f"both streams arrive: {agent.log}",
    )

    operations.kill_jobs([job.pk], actor=Actor.person(world.alice), reason="seen enough")
    assert agent.wait() == 0
    world.wait_for_state(job, "killed")


def test_the_use_of_resources_is_told_in_the_end(world: World, fence: str) -> None:
    job = world.submit("#!/bin/sh\nhead -c 3000000 /dev/zero >file; sleep 0.5\n")

    assert world.start().wait() == 0

    world.wait_for_state(job, "done")
    attempt = Attempt.objects.get(job=job)
    assert attempt.usage["disk_mb"] > 2
    assert attempt.usage["written_mb"] >= 0
    assert attempt.max_rss_mb > 0


def test_outputs_that_are_too_large_together_are_missing_with_the_reason(
    world: World, fence: str
) -> None:
    job = world.submit(
        "#!/bin/sh\nfor n in 1 2; do head -c 2000000 /dev/zero >out$n; done\n",
        outputs=("out1", "out2"),
    )
    Queue.objects.update(payload_limits={"output_sandbox_mb": 3})
    agent = world.start()

    assert agent.wait() == 0
    reason = world.wait_for_state(job, "failed").state_reason
    assert "output out2" in reason
