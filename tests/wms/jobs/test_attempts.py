from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests import factories
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound
from wms.core.models import InboxEntry, User
from wms.jobs.attempts import rescheduling
from wms.jobs.attempts.ending import PayloadEnd, end_attempt, return_job
from wms.jobs.attempts.guard import AttemptSuperseded, live_attempt
from wms.jobs.attempts.progress import (
    MOST_ATTRIBUTES,
    add_attempt_file,
    note_attributes,
    start_attempt,
)
from wms.jobs.attempts.rescheduling import (
    recover_jobs_of_pilot,
    reschedule_jobs_of_pilots,
    stall_jobs_of_pilots,
)
from wms.jobs.content.blobs import store_bytes
from wms.jobs.content.inputs import input_blobs
from wms.jobs.models import Attempt, Job, JobEvent, LoggedJobEvent, WorkspaceFile
from wms.jobs.operations import (
    JobSpec,
    bind_to_pilot,
    create_workspace,
    fail_unrunnable,
    kill_jobs,
    submit_jobs,
)
from wms.jobs.states import JobCause
from wms.taskqueues import operations as taskqueues
from wms.taskqueues.models import WaitingJob
from wms.taskqueues.operations import claim

NOW = datetime(2026, 11, 20, tzinfo=UTC)
PILOT = Actor.pilot("p")
LOST = Attempt.Outcome.LOST


@pytest.fixture
def job(alice: User) -> Job:
    spec = JobSpec(
        name="run",
        executable="run.sh",
        needs=Needs.of("alice"),
        output_files=("out.txt",),
        stdout_name="run.out",
        max_attempts=2,
    )
    (pk,) = submit_jobs(
        [spec], owner=alice, workspace=create_workspace(alice, {}), actor=Actor.person(alice)
    )
    return Job.objects.get(pk=pk)


def take(pilot_id: int = 1) -> Attempt:
    claimed = claim(Resource("site-a", cpu_time_s=10**6))
    assert claimed is not None
    attempt = bind_to_pilot(
        claimed, pilot_id=pilot_id, site_name="site-a", host="n", free_cores=1, actor=PILOT
    )
    assert attempt is not None
    return attempt


def end(attempt: Attempt, **fields: object) -> None:
    payload = PayloadEnd(**({"exit_code": 0} | fields))  # type: ignore[arg-type]
    end_attempt(
        attempt.job_id, attempt.number, pilot_id=attempt.pilot_id, end=payload, actor=PILOT, now=NOW
    )


def send_output(attempt: Attempt, content: bytes = b"result") -> None:
    add_attempt_file(attempt, kind="output", path="out.txt", blob=store_bytes(content))


def history(job: Job) -> list[str]:
    return list(
        LoggedJobEvent.objects.filter(job=job).order_by("pk").values_list("event", flat=True)
    )


def test_what_an_attempt_used_and_how_it_ended_is_stored_without_names(job: Job) -> None:
    attempt = take()
    used = {"wall_s": 61.5, "cpu_s": 60.0, "disk_mb": 0.25, "files": 4, "read_mb": 1.5}

    end(attempt, exit_code=3, wall_s=61.5, cpu_s=60.0, usage=used)

    attempt.refresh_from_db()
    event = JobEvent.objects.get(job=job, event="fail")
    assert attempt.whole_usage == used
    assert event.facts == {"cpu_s": 60.0, "exit_code": 3}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attempt.usage::text, event.facts::text FROM jobs_attempt AS attempt"
            " JOIN jobs_jobevent AS event USING (job_id) WHERE event.id = %s",
            [event.pk],
        )
        assert cursor.fetchone() == ('",4,,0.25,1.5"', '"60.0,,3"')


def test_a_job_tells_where_its_latest_attempt_is_or_was(job: Job) -> None:
    assert job.site_name == ""

    take()
    reschedule_jobs_of_pilots([1], outcome=LOST, actor=PILOT, reason="the pilot was lost")

    job.refresh_from_db()
    assert (job.attempt_number, job.site_name) == (1, "site-a")


def test_a_success_puts_outputs_and_logs_into_the_workspace(job: Job) -> None:
    attempt = take()
    start_attempt(job.pk, 1, pilot_id=1, actor=PILOT)
    send_output(attempt, b"result")
    add_attempt_file(attempt, kind="stdout", path="stdout", blob=store_bytes(b"hello"))

    end(attempt, cpu_s=1.5)

    job.refresh_from_db()
    assert job.state == "done"
    files = WorkspaceFile.objects.filter(workspace=job.workspace)
    assert {file.path for file in files} == {"out.txt", "run.out"}
    assert history(job) == ["enqueue", "match", "start", "complete"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exit_code": 2}, "the payload ended with exit code 2"),
        ({"exit_code": None, "signal": 9}, "the payload was ended by signal 9"),
        ({"exit_code": None, "reason": "wall clock limit of 5 s"}, "wall clock limit of 5 s"),
        ({"missing_outputs": ("out.txt",)}, "output files are missing: out.txt"),
    ],
)
def test_a_failure_tells_why_and_keeps_outputs_out_of_the_workspace(
    job: Job, fields: dict[str, object], reason: str
) -> None:
    attempt = take()
    send_output(attempt)

    end(attempt, **fields)

    job.refresh_from_db()
    assert (job.state, job.state_reason) == ("failed", reason)
    assert not WorkspaceFile.objects.filter(workspace=job.workspace).exists()


def test_a_success_without_its_output_is_a_failure(job: Job) -> None:
    end(take())

    job.refresh_from_db()
    assert (job.state_cause, "out.txt" in job.state_reason) == ("outputs", True)


def test_a_report_that_is_repeated_changes_nothing(job: Job) -> None:
    attempt = take()
    send_output(attempt)

    end(attempt)
    end(attempt)
    end(attempt, exit_code=1)

    assert history(job).count("complete") == 1
    assert Attempt.objects.get().outcome == "done"


def test_a_report_of_an_old_attempt_is_refused_and_its_files_do_not_count(job: Job) -> None:
    old = take(pilot_id=1)
    reschedule_jobs_of_pilots([1], outcome=LOST, actor=PILOT, reason="lost")
    new = take(pilot_id=2)
    send_output(new, b"new")

    with pytest.raises(AttemptSuperseded):
        end(old)
    with pytest.raises(AttemptSuperseded):
        live_attempt(job.pk, 1, pilot_id=1)
    end(new)

    file = WorkspaceFile.objects.get(path="out.txt")
    assert file.attempt_id == new.pk
    assert history(job).count("complete") == 1


def test_another_pilot_knows_nothing_of_the_attempt(job: Job) -> None:
    take(pilot_id=1)

    with pytest.raises(NotFound):
        live_attempt(job.pk, 1, pilot_id=2)


def test_a_stalled_job_is_welcomed_back_with_the_same_attempt(job: Job) -> None:
    attempt = take()
    start_attempt(job.pk, 1, pilot_id=1, actor=PILOT)
    stall_jobs_of_pilots([1], actor=PILOT, reason="silent")

    recover_jobs_of_pilot(1, actor=PILOT)
    send_output(attempt)
    end(attempt)

    job.refresh_from_db()
    assert (job.state, job.attempt_number) == ("done", 1)
    assert history(job) == ["enqueue", "match", "start", "stall", "recover", "complete"]


def test_a_stalled_job_whose_pilot_reports_the_end_after_all_is_done(job: Job) -> None:
    attempt = take()
    stall_jobs_of_pilots([1], actor=PILOT, reason="silent")
    send_output(attempt)

    end(attempt)

    job.refresh_from_db()
    assert job.state == "done"


def test_a_job_that_used_up_its_attempts_fails(job: Job) -> None:
    for pilot_id in (1, 2):
        take(pilot_id)
        reschedule_jobs_of_pilots([pilot_id], outcome=LOST, actor=PILOT, reason="the pilot is lost")

    job.refresh_from_db()
    assert (job.state, job.attempt_number) == ("failed", 2)
    assert claim(Resource("site-a", cpu_time_s=10**6)) is None


def test_a_job_that_could_not_be_run_waits_for_another_pilot(job: Job) -> None:
    take(1)

    return_job(job.pk, 1, pilot_id=1, reason="input does not verify", actor=PILOT)
    return_job(job.pk, 1, pilot_id=1, reason="input does not verify", actor=PILOT)

    assert take(2).number == 2
    assert Attempt.objects.get(number=1).outcome == "not_run"


def test_a_killed_job_takes_no_report(job: Job) -> None:
    attempt = take()
    kill_jobs([job.pk], actor=PILOT, reason="not wanted")

    with pytest.raises(AttemptSuperseded):
        end(attempt)

    job.refresh_from_db()
    assert (job.state, Attempt.objects.get().outcome) == ("killed", "killed")


def test_a_job_that_is_rescheduled_while_it_is_killed_does_not_stay_in_its_task_queue(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    take()
    really = taskqueues.withdraw

    def withdraw_and_be_overtaken(job_ids: Collection[int]) -> None:
        really(job_ids)
        monkeypatch.setattr(taskqueues, "withdraw", really)
        reschedule_jobs_of_pilots([1], outcome=LOST, actor=PILOT, reason="lost")

    monkeypatch.setattr(taskqueues, "withdraw", withdraw_and_be_overtaken)

    kill_jobs([job.pk], actor=PILOT, reason="not wanted")

    job.refresh_from_db()
    assert job.state == "killed"
    assert not WaitingJob.objects.exists()


def test_a_job_that_has_just_gone_on_to_another_pilot_is_left_to_it(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(1)
    really = rescheduling._open_jobs

    def open_jobs_a_moment_ago(pilot_ids: Collection[int]) -> list[int]:
        found = really(pilot_ids)
        monkeypatch.setattr(rescheduling, "_open_jobs", really)
        return_job(job.pk, 1, pilot_id=1, reason="disk full", actor=PILOT)
        take(2)
        return found

    monkeypatch.setattr(rescheduling, "_open_jobs", open_jobs_a_moment_ago)

    reschedule_jobs_of_pilots([1], outcome=LOST, actor=PILOT, reason="lost")

    job.refresh_from_db()
    assert (job.state, job.attempt_number) == ("matched", 2)
    assert Attempt.objects.get(number=2).outcome == ""


def test_an_old_attempt_that_cannot_be_run_does_not_fail_the_new_one(job: Job) -> None:
    old = take(1)
    reschedule_jobs_of_pilots([1], outcome=LOST, actor=PILOT, reason="lost")
    take(2)

    fail_unrunnable(old, actor=PILOT, reason="input files do not exist", cause=JobCause.INPUTS)

    job.refresh_from_db()
    assert job.state == "matched"


def test_a_file_that_is_made_again_has_the_time_of_its_making(job: Job) -> None:
    blob = store_bytes(b"old")
    WorkspaceFile.objects.create(workspace=job.workspace, path="out.txt", blob=blob)
    attempt = take()
    send_output(attempt, b"new")

    end(attempt)

    assert WorkspaceFile.objects.get(path="out.txt").modified_at == NOW


def test_the_database_itself_refuses_a_second_completion(job: Job) -> None:
    attempt = take()
    send_output(attempt)
    end(attempt)

    with pytest.raises(IntegrityError, match="job_open_or_done_once"), transaction.atomic():
        Attempt.objects.create(job=job, number=2, pilot_id=2, site_name="x", outcome="done")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b"])
def test_a_file_of_a_pilot_cannot_leave_the_workspace(job: Job, path: str) -> None:
    with pytest.raises(InvalidInput):
        add_attempt_file(take(), kind="output", path=path, blob=store_bytes(b""))


def test_files_of_a_job_with_a_directory_have_their_names_there(job: Job) -> None:
    factories.describe(
        Job.objects.filter(pk=job.pk),
        directory="d",
        executable="d/run.sh",
        input_files=["in.txt", "run.sh"],
    )
    blob = store_bytes(b"x")
    WorkspaceFile.objects.bulk_create(
        WorkspaceFile(workspace=job.workspace, path=path, blob=blob)
        for path in ("d/run.sh", "d/in.txt", "in.txt")
    )
    job.refresh_from_db()

    assert set(input_blobs(job)) == {"d/run.sh", "in.txt", "run.sh"}
    attempt = take()
    send_output(attempt)
    end(attempt)

    made = WorkspaceFile.objects.filter(attempt=attempt).values_list("path", flat=True)
    assert list(made) == ["d/out.txt"]


def tell(attempt: Attempt, pilot_id: int = 1, **attributes: int | str) -> None:
    told = {(attempt.job_id, attempt.number): attributes}
    note_attributes(told, pilot_id=pilot_id, actor=PILOT)


def updates(job: Job) -> list[dict[str, object]]:
    events = JobEvent.objects.filter(job=job, event="update").order_by("pk")
    return list(events.values_list("facts", flat=True))


def test_what_a_payload_tells_is_merged_into_its_job_and_told_once(job: Job) -> None:
    factories.describe(
        Job.objects.filter(pk=job.pk), attributes={"Kept": "1 + 1", "phase": '"one"'}
    )
    Job.objects.filter(pk=job.pk).update(topic="dag-jobs", topic_key=7)
    attempt = take()

    tell(attempt, Phase="two", Left=3)
    tell(attempt, PHASE="two", Left=3)
    tell(attempt, Left=2)

    job.refresh_from_db()
    assert job.attributes == {"Kept": "1 + 1", "phase": '"two"', "Left": 2}
    assert job.state == "matched"
    assert updates(job) == [{"phase": "two", "Left": 3}, {"Left": 2}]
    events = JobEvent.objects.filter(job=job, event="update").order_by("pk")
    heard = InboxEntry.objects.filter(topic="dag-jobs", key=7).order_by("pk")
    assert list(heard.values_list("subject_id", flat=True)) == [event.pk for event in events]
    assert {(event.from_state, event.to_state) for event in events} == {("matched", "matched")}


def test_nothing_is_told_by_a_stranger_or_by_an_attempt_that_is_over(job: Job) -> None:
    attempt = take()
    tell(attempt, pilot_id=2, A=1)
    send_output(attempt)
    end(attempt)
    tell(attempt, A=1)

    job.refresh_from_db()
    assert job.attributes == {}
    assert updates(job) == []


def test_the_attributes_of_a_job_do_not_grow_without_end(job: Job) -> None:
    attempt = take()
    for first in range(0, MOST_ATTRIBUTES + 40, 20):
        tell(attempt, **{f"A{number}": 1 for number in range(first, first + 20)})
    tell(attempt, A0=2, New=1)

    job.refresh_from_db()
    assert len(job.attributes) == MOST_ATTRIBUTES
    assert updates(job)[-1] == {"A0": 2}


def test_a_text_that_a_payload_tells_is_no_expression(job: Job) -> None:
    factories.describe(Job.objects.filter(pk=job.pk), periodic={"on_exit_hold": 'Said == "1 + 1"'})
    attempt = take()
    tell(attempt, Said="1 + 1")
    send_output(attempt)
    end(attempt)

    job.refresh_from_db()
    assert job.state == "held"
