"""Migrations of jobs carry a filled database with running work over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from matching.task_queues.needs import Needs
from tests import factories
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.accounting import account_attempts
from wms.jobs.content import unnamed_contents
from wms.jobs.models import (
    Attempt,
    Blob,
    EndedAttempt,
    Job,
    JobDescription,
    JobEvent,
    LoggedJobEvent,
)
from wms.jobs.operations import hold_jobs, release_jobs
from wms.jobs.selectors import held_in_pilot
from wms.pilots.models import Pilot
from wms.taskqueues.models import WaitingJob

SYSTEM = Actor.system("test")


@pytest.mark.django_db
def test_jobs_keep_their_values_and_go_on(alice: User) -> None:
    before = MigrationExecutor(connection)
    before.migrate([("jobs", "0001_schema")])
    old = before.loader.project_state([("jobs", "0001_schema")]).apps
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    needs = Needs.of("alice", memory_mb=100, sites=("x",)).as_dict()
    del needs["disk_mb"], needs["limits"]
    for number in range(3):
        old.get_model("jobs", "Job").objects.create(
            name=f"n{number}", owner_id=alice.pk, workspace_id=workspace.pk, state="waiting",
            executable="run.sh", arguments=["--n", str(number)], environment={"A": "1"},
            input_files=["in"], output_files=["out"], stdout_name=f"so{number}", needs=needs,
            attributes={"Phase": number, "Nothing": None}, wall_limit_s=60, max_retries=2,
            periodic={"hold": "false"} if number else None, request_disk_mb=5, directory="d",
            avoided_hosts=["wn1"] if number == 2 else [],
        )  # fmt: skip

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("jobs"))

    jobs = list(Job.objects.order_by("pk"))
    assert JobDescription.objects.count() == 2
    for number, job in enumerate(jobs):
        assert (job.executable, job.arguments) == ("run.sh", ["--n", str(number)])
        assert (job.environment, job.needs) == ({"A": "1"}, {**needs, "disk_mb": 5, "limits": []})
        assert (job.input_files, job.output_files) == (["in"], ["out"])
        assert (job.stdout_name, job.stderr_name) == (f"so{number}", "")
        assert job.attributes["Phase"] == number
        assert (job.wall_limit_s, job.max_retries) == (60, 2)
        assert (job.periodic, job.has_periodic) == (
            {"hold": "false"} if number else None, bool(number),
        )  # fmt: skip
        assert (job.directory, job.avoided_hosts) == ("d", ["wn1"] if number == 2 else [])
    ids = [job.pk for job in jobs]
    hold_jobs(ids, actor=SYSTEM, reason="look")
    release_jobs(ids, actor=SYSTEM)
    assert WaitingJob.objects.count() == 3


@pytest.mark.django_db
def test_contents_that_are_stored_already_are_in_use_and_stay(alice: User) -> None:
    state = [("jobs", "0004_quotas")]
    before = MigrationExecutor(connection)
    before.migrate(state)
    old = before.loader.project_state(state).apps
    blob = old.get_model("jobs", "Blob").objects.create(sha256="ab" * 32, size_bytes=1)
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    old.get_model("jobs", "WorkspaceFile").objects.create(workspace=workspace, path="a", blob=blob)
    connection.check_constraints()

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("jobs"))

    now = timezone.now()
    assert unnamed_contents.mark_next(now=now, after="") == ("", 0)
    assert unnamed_contents.delete_unnamed(now=now + timedelta(days=2)) == (0, 0)
    assert Blob.objects.get().unnamed_since is None


@pytest.mark.django_db
def test_open_attempts_hold_the_disk_that_their_jobs_need(alice: User) -> None:
    state = [("jobs", "0010_row_of_cluster_once")]
    before = MigrationExecutor(connection)
    before.migrate(state)
    old = before.loader.project_state(state).apps
    shared = old.get_model("jobs", "JobDescription").objects.create(
        key=b"k", content={"needs": {"disk_mb": 70}}
    )
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    for number, (own, outcome) in enumerate(
        [(None, ""), ({"needs": {"disk_mb": 5}}, ""), ({"needs": {"cores": 2}}, ""), (None, "lost")]
    ):
        job = old.get_model("jobs", "Job").objects.create(
            name=f"n{number}", owner_id=alice.pk, workspace_id=workspace.pk, state="running",
            description=shared, own=own, attempt_number=1, max_attempts=5,
        )  # fmt: skip
        old.get_model("jobs", "Attempt").objects.create(
            job=job, number=1, pilot_id=1, site_name="x", outcome=outcome
        )
    connection.check_constraints()

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("jobs"))

    held = list(Attempt.objects.order_by("job_id").values_list("disk_mb", flat=True))
    assert held == [70, 5, 70, 0]
    assert held_in_pilot(1)["disk_mb"] == 145


@pytest.mark.django_db
def test_what_is_to_be_accounted_stays_so_forth_and_back(alice: User) -> None:
    state = [("jobs", "0012_container_image")]
    before = MigrationExecutor(connection)
    before.migrate(state)
    old = before.loader.project_state(state).apps
    shared = old.get_model("jobs", "JobDescription").objects.create(key=b"k", content={})
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    for number, (outcome, is_accounted) in enumerate(
        [("done", False), ("done", True), ("", False)]
    ):
        job = old.get_model("jobs", "Job").objects.create(
            name=f"n{number}", owner_id=alice.pk, workspace_id=workspace.pk, state="running",
            description=shared, attempt_number=1, max_attempts=5,
        )  # fmt: skip
        old.get_model("jobs", "Attempt").objects.create(
            job=job, number=1, pilot_id=1, site_name="x", outcome=outcome,
            is_accounted=is_accounted, usage={"wall_s": 3.5}, ended_at=timezone.now(),
        )  # fmt: skip
    connection.check_constraints()

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("jobs"))

    first = Attempt.objects.earliest("pk")
    assert list(EndedAttempt.objects.values_list("pk", flat=True)) == [first.pk]
    assert first.whole_usage == {"wall_s": 3.5}

    back = MigrationExecutor(connection)
    back.migrate(state)

    marks = back.loader.project_state(state).apps.get_model("jobs", "Attempt").objects
    assert list(marks.order_by("pk").values_list("is_accounted", flat=True)) == [
        False, True, False,
    ]  # fmt: skip
    forth = MigrationExecutor(connection)
    forth.migrate(forth.loader.graph.leaf_nodes("jobs"))
    assert account_attempts() == 1
    assert account_attempts() == 0


@pytest.mark.django_db
def test_the_log_of_jobs_stays_the_same_whichever_rows_tell_it(alice: User) -> None:
    state = [("jobs", "0014_ended_jobs_last")]
    job = factories.job(alice)
    factories.run_job(factories.pilot())
    log = _log_of(LoggedJobEvent, job)
    assert [event for _, event, *_ in log] == ["enqueue", "match", "start", "complete"]
    assert [event for _, event, *_ in _log_of(JobEvent, job)] == ["complete"]
    connection.check_constraints()

    back = MigrationExecutor(connection)
    back.migrate(state)

    old = back.loader.project_state(state).apps.get_model("jobs", "JobEvent")
    stored = _log_of(old, job)
    connection.check_constraints()
    forth = MigrationExecutor(connection)
    forth.migrate(forth.loader.graph.leaf_nodes("jobs"))
    assert _log_of(LoggedJobEvent, job) == _log_of(JobEvent, job) == log
    # As the rows have them, with actors and states in their stored forms.
    assert [(row[:2], row[-2:]) for row in stored] == [(row[:2], row[-2:]) for row in log]
    later = factories.job(alice)
    factories.run_job(Pilot.objects.get())
    assert len(_log_of(LoggedJobEvent, later)) == 4


def _log_of(model: Any, job: Job) -> list[tuple[Any, ...]]:
    columns = ("pk", "event", "from_state", "to_state", "actor", "job_id", "created_at")
    return list(model.objects.filter(job_id=job.pk).order_by("pk").values_list(*columns))
