"""Migrations of jobs carry a filled database with running work over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from matching.task_queues.needs import Needs
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.content import unnamed_contents
from wms.jobs.models import Attempt, Blob, Job, JobDescription
from wms.jobs.operations import hold_jobs, release_jobs
from wms.jobs.selectors import held_in_pilot
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
