"""Directives carried out by a real pilot: standard input, folders, new names, checkpoints."""

from __future__ import annotations

import pytest

from tests.wms.pilots.agent.conftest import World
from wms.jobs.models import Attempt, AttemptFile, JobEvent, WorkspaceFile

pytestmark = pytest.mark.django_db(transaction=True)


def paths(job) -> set[str]:
    found = WorkspaceFile.objects.filter(workspace_id=job.workspace_id, attempt__isnull=False)
    return set(found.values_list("path", flat=True))


def test_a_payload_reads_its_standard_input(world: World) -> None:
    job = world.submit(
        "#!/bin/sh\ntr a-z A-Z > out\n",
        inputs={"sub/in put.txt": b"hello"},
        outputs=("out",),
        directives={"stdin_name": "sub/in put.txt"},
    )

    world.start()

    world.wait_for_state(job, "done", "failed")
    assert world.output(job, "out") == b"HELLO"


def test_folders_come_back_with_all_that_is_in_them_and_new_names(world: World) -> None:
    job = world.submit(
        "#!/bin/sh\nmkdir -p plots/deep flat empty\n"
        "echo 1 > plots/a; echo 2 > plots/deep/b; echo 3 > flat/c; echo 4 > flat/d; echo 5 > e\n"
        "ln -s /etc/passwd plots/outside\n",
        outputs=("plots", "flat/", "empty", "e"),
        directives={"output_remaps": {"e": "results/e.txt", "flat/d": "d.txt", "b": "b.txt"}},
    )

    world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert job.state == "done", job.state_reason
    assert paths(job) == {"plots/a", "b.txt", "c", "d.txt", "results/e.txt"}
    assert world.output(job, "b.txt") == b"2\n"


def test_a_folder_that_is_missing_is_a_missing_output(world: World) -> None:
    job = world.submit("#!/bin/sh\necho 1 > plots\n", outputs=("plots/",))

    world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert (job.state, job.state_cause) == ("failed", "outputs")


CHECKPOINTING = """#!/bin/sh
n=$(cat state/count 2>/dev/null || echo 0)
echo "step $n"
[ "$n" -ge 3 ] && { cp state/count result; exit 0; }
mkdir -p state
echo $((n + 1)) > state/count
exit 85
"""
CHECKPOINT = {"checkpoint_exit_code": 85, "checkpoint_files": ["state"]}


def test_a_payload_goes_on_from_its_checkpoints_in_one_attempt(world: World) -> None:
    job = world.submit(CHECKPOINTING, outputs=("result",), directives=CHECKPOINT)

    world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert (job.state, job.attempt_number) == ("done", 1)
    assert world.output(job, "result") == b"3\n"
    assert world.log_of(job) == "step 0\nstep 1\nstep 2\nstep 3\n"
    assert JobEvent.objects.filter(job=job, event="checkpoint").count() == 3
    assert not AttemptFile.objects.filter(kind__in=("checkpoint", "incoming")).exists()


def test_the_next_attempt_begins_with_the_checkpoint(world: World) -> None:
    script = CHECKPOINTING.replace(
        'echo "step $n"\n',
        'echo "step $n"\n[ "$PILOTAGE_ATTEMPT" = 1 ] && [ "$n" = 2 ] && exit 7\n',
    )
    job = world.submit(script, outputs=("result",), directives=CHECKPOINT, max_retries=1)

    world.start()

    job = world.wait_for_state(job, "done", "failed")
    assert (job.state, job.attempt_number) == ("done", 2)
    assert world.log_of(job) == "step 2\nstep 3\n"
    assert list(Attempt.objects.values_list("exit_code", flat=True)) == [7, 0]


def test_a_checkpoint_without_its_files_holds_the_job(world: World) -> None:
    job = world.submit("#!/bin/sh\nexit 85\n", directives=CHECKPOINT)

    world.start()

    job = world.wait_for_state(job, "held", "done", "failed")
    assert (job.state, job.state_cause) == ("held", "checkpoint")
    event = JobEvent.objects.get(job=job, event="hold")
    assert event.facts["hold_code"] == 36


def test_a_payload_that_runs_longer_than_its_description_allows_is_held(world: World) -> None:
    job = world.submit(
        "#!/bin/sh\nsleep 60\n", wall_limit_s=1, directives={"is_held_at_wall_limit": True}
    )

    world.start()

    job = world.wait_for_state(job, "held", "done", "failed")
    assert (job.state, job.state_cause) == ("held", "execution")
    assert JobEvent.objects.get(job=job, event="hold").facts["hold_code"] == 47


def test_disk_space_that_no_pilot_has_keeps_a_job_waiting(world: World) -> None:
    large = world.submit("#!/bin/sh\ntrue\n", disk_mb=2**30)
    small = world.submit("#!/bin/sh\ntrue\n", disk_mb=1)

    world.start()

    world.wait_for_state(small, "done")
    large.refresh_from_db()
    assert large.state == "waiting"


def test_a_payload_is_killed_after_the_time_that_its_description_gives(world: World) -> None:
    job = world.submit(
        "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n",
        wall_limit_s=1,
        directives={"kill_grace_s": 1},
    )

    world.start()

    job = world.wait_for_state(job, "done", "failed")
    attempt = Attempt.objects.get(job=job)
    assert (job.state, attempt.signal) == ("failed", 9)
    # Without it the time would be 10 s, after the one second that it may run.
    assert 2 <= attempt.wall_s < 10
