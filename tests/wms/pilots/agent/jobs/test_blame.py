"""Jobs that cannot be run, through the node's fault or through their own."""

from __future__ import annotations

from tests.wms.pilots.agent.conftest import World, wait_until
from wms.jobs.models import Attempt


def test_a_node_that_cannot_run_a_job_costs_it_one_attempt_and_the_pilot_its_life(
    world: World,
) -> None:
    # One job leaves a file where the pilot wants to make the directory of the next, which waits
    # only when the first is certain to be taken before it.
    here = world.directory
    world.submit(
        '#!/bin/sh\ntouch "../../job-$((PILOTAGE_JOB + 1))-1"\n'
        f"touch {here}/there\nwhile [ ! -e {here}/go ]; do sleep 0.05; done\n"
    )
    unfit = world.start()
    wait_until((here / "there").exists, "the first job runs")
    job = world.submit("#!/bin/sh\necho ran\n")
    (here / "go").touch()

    assert unfit.wait() == 1
    assert world.wait_for_state(job, "waiting").attempt_number == 1
    assert "this node failed" in Attempt.objects.get(job=job).reason
    unfit.pilot.refresh_from_db()
    assert unfit.pilot.state == "failed"

    assert world.start().wait() == 0
    assert world.wait_for_state(job, "done").attempt_number == 2
    assert world.log_of(job) == "ran\n"


def test_a_job_whose_file_names_contradict_each_other_fails_and_the_pilot_goes_on(
    world: World,
) -> None:
    impossible = world.submit("#!/bin/sh\ntrue\n", inputs={"data": b"1", "data/x": b"2"})
    too_long = world.submit("#!/bin/sh\ntrue\n", inputs={"ä" * 200: b"1"})
    possible = world.submit("#!/bin/sh\ntrue\n")

    agent = world.start()

    assert agent.wait() == 0
    assert "input data" in world.wait_for_state(impossible, "failed").state_reason
    assert "name too long" in world.wait_for_state(too_long, "failed").state_reason
    world.wait_for_state(possible, "done")
    assert {each.number for each in Attempt.objects.all()} == {1}


def test_a_log_that_cannot_be_shortened_fails_the_job_and_not_the_pilot(world: World) -> None:
    # A folder in the way of the shortened log fails as a full disk does.
    job = world.submit("#!/bin/sh\nmkdir ../stdout.short\nhead -c 11000000 /dev/zero\n")

    agent = world.start()

    assert agent.wait() == 0
    assert "stdout" in world.wait_for_state(job, "failed").state_reason
