"""The plans of what pilots send all the time, among very many that have ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests import factories
from tests.wms.plans.query_plans import (
    analyze,
    explain,
    rows_read,
    run,
    scanned_whole,
    settle,
)
from wms.jobs import sql as jobs
from wms.jobs.models import Attempt, JobDescription, Workspace
from wms.pilots.models import Pilot
from wms.pilots.monitoring import sql as monitoring
from wms.pilots.pressure import sql as pressure
from wms.pilots.protocol import sql as protocol
from wms.pilots.states import TERMINAL
from wms.sites.models import Queue

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

#: Of the pilots, those that live; each has an attempt.
LIVING = 200


@pytest.fixture(scope="module")
def pilots(module_rows: None) -> None:
    """200 running pilots, 39,800 that have ended, and an attempt of each."""
    alice = factories.person("alice")
    factories.site("site-a")
    run(
        """
        INSERT INTO pilots_pilot
            (uuid, queue_id, state, state_reason, batch, native_id, secret_sha256, token_sha256,
             node, missing_polls, is_forgotten, created_at, registered_at, ended_at)
        SELECT gen_random_uuid(), %s, CASE WHEN n > %s THEN 'done' ELSE 'running' END, '', 'b', '',
               '', md5(n::text), '{}', 0, true, now(), now(), CASE WHEN n > %s THEN now() END
        FROM generate_series(1, 40000) AS n
        """,
        [Queue.objects.get().pk, LIVING, LIVING],
    )
    workspace = Workspace.objects.create(owner=alice)
    description = JobDescription.objects.create(key=b"1" * 32, content={"executable": "a"})
    run(
        """
        WITH job AS (
            INSERT INTO jobs_job
                (name, owner_id, workspace_id, state, state_reason, description_id,
                 max_attempts, attempt_number, topic, topic_key)
            SELECT 'a', %s, %s, 'running', '', %s, 1, 1, '', 0
            FROM generate_series(1, 40000)
            RETURNING id
        ), placed AS (
            SELECT id, row_number() OVER (ORDER BY id) AS place FROM job
        )
        INSERT INTO jobs_attempt
            (job_id, number, pilot_id, site_name, host, job_type, outcome, reason, ended_at,
             matched_at, started_at)
        SELECT placed.id, 1, pilot.id, 'site-a', 'wn' || pilot.id %% 50, '',
               CASE WHEN pilot.state = 'running' THEN '' ELSE 'failed' END, '', pilot.ended_at,
               now(), now()
        FROM placed
        JOIN (
            SELECT *, row_number() OVER (ORDER BY id DESC) AS place FROM pilots_pilot
        ) AS pilot USING (place)
        ORDER BY place
        """,
        [alice.pk, workspace.pk, description.pk],
    )
    settle("pilots_pilot", "jobs_job", "jobs_attempt")


def test_a_heartbeat_reads_its_pilot_and_its_attempts_alone(pilots: None) -> None:
    pilot = Pilot.objects.filter(state="running")[100]
    now = datetime.now(UTC)

    steps = explain(
        protocol.RECORD_HEARTBEAT,
        {
            "now": now,
            "sequence": 1,
            "load": None,
            "is_draining": False,
            "facts": "{}",
            "validation_s": None,
            "uuid": pilot.uuid,
            "digest": pilot.token_sha256,
            "ended_since": now - timedelta(hours=1),
            "usage": "[]",
        },
    )

    for table in ("pilots_pilot", "jobs_attempt"):
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) <= 2


def test_a_claim_begins_with_its_pilot_alone(pilots: None) -> None:
    pilot = Pilot.objects.filter(state="running").select_related("queue")[100]

    steps = explain(
        protocol.BEGIN_CLAIM,
        {
            "now": datetime.now(UTC),
            "pilot": pilot.pk,
            "ended": sorted(TERMINAL),
            "site": pilot.queue.site_id,
            "host": "wn1",
        },
    )

    assert not scanned_whole(steps, "pilots_pilot")
    assert rows_read(steps, "pilots_pilot") == 1


def test_rooms_are_counted_without_reading_attempts_that_have_ended(pilots: None) -> None:
    now = datetime.now(UTC)

    steps = explain(
        pressure.COUNT_FREE_CAPACITY,
        {"now": now, "lately": now - timedelta(minutes=30), "times_s": [0.0]},
    )

    for table in ("pilots_pilot", "jobs_attempt"):
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) == LIVING


def test_nodes_are_judged_by_the_latest_attempts_alone(pilots: None) -> None:
    now = datetime.now(UTC)
    times = {"since": now - timedelta(hours=1), "survived": now - timedelta(minutes=1)}

    troubled = explain(monitoring.FIND_TROUBLED_SITES, {"latest": 1000, "least": 3, **times})
    trials = explain(monitoring.READ_TRIALS, {"latest": 1000, "sites": ["site-a"], **times})

    for steps in (troubled, trials):
        assert not scanned_whole(steps, "jobs_attempt")
        # And the last one, which tells where the latest begin.
        assert rows_read(steps, "jobs_attempt") <= 1001


def _files_of_many() -> None:
    """Three files of each attempt that has ended, and as many files in one workspace."""
    run("INSERT INTO jobs_blob (sha256, size_bytes) VALUES ('x', 1)")
    run(
        "INSERT INTO jobs_attemptfile (attempt_id, kind, path, blob_id)"
        " SELECT id, 'output', 'f' || n, 'x' FROM jobs_attempt, generate_series(1, 3) AS n"
    )
    run(
        "INSERT INTO jobs_workspacefile (workspace_id, path, blob_id)"
        " SELECT (SELECT min(id) FROM jobs_workspace), 'f' || n, 'x'"
        " FROM generate_series(1, 40000) AS n"
    )
    analyze("jobs_attemptfile", "jobs_workspacefile")


def test_a_pilot_is_found_by_its_uuid_with_all_that_it_belongs_to(pilots: None) -> None:
    statement = protocol.FIND_PILOT.format(
        pilot="pilot.id", queue="queue.id", site="site.id", owner="owner.id",
        owner_group="owner_group.id",
    )  # fmt: skip

    steps = explain(statement, {"uuid": Pilot.objects.latest("pk").uuid})

    assert not scanned_whole(steps, "pilots_pilot")
    assert rows_read(steps, "pilots_pilot") == 1


def test_reports_read_their_own_job_and_attempt_with_its_files(pilots: None) -> None:
    _files_of_many()
    attempt = Attempt.objects.latest("pk")
    about = {"job_id": attempt.job_id, "number": 1, "pilot_id": attempt.pilot_id}

    by_id = explain(jobs.FIND_JOB.format(job="job.id", description="description.id"), about)
    locked = explain(
        jobs.LOCK_JOB_OF_ATTEMPT.format(job="job.id", description="description.id"), about
    )
    with_files = explain(jobs.FIND_ATTEMPT.format(attempt="attempt.id"), about)

    for steps in (by_id, locked):
        assert not scanned_whole(steps, "jobs_job")
        assert rows_read(steps, "jobs_job") == 1
    for steps in (locked, with_files):
        assert not scanned_whole(steps, "jobs_attempt")
        assert rows_read(steps, "jobs_attempt") == 1
    assert not scanned_whole(with_files, "jobs_attemptfile")
    assert rows_read(with_files, "jobs_attemptfile") == 3


def test_a_claim_reads_the_attempts_of_its_pilot_only(pilots: None) -> None:
    pilot = Pilot.objects.exclude(state__in=TERMINAL).first()
    statement = jobs.FIND_ATTEMPTS_OF_CLAIM.format(attempt="attempt.id")

    steps = explain(statement, {"pilot_id": pilot.pk, "claim_key": "0" * 32, "stored_key": "~"})

    assert not scanned_whole(steps, "jobs_attempt")
    assert rows_read(steps, "jobs_attempt") == 1


def test_the_end_of_an_attempt_touches_one_row(pilots: None) -> None:
    attempt = Attempt.objects.latest("pk")
    ended = dict.fromkeys(
        ("exit_code", "signal", "wall_s", "cpu_s", "max_rss_mb", "ended_at"), None
    )
    about = {"attempt_id": attempt.pk, "began_at": datetime.now(UTC), "usage": "{}"}

    steps = explain(
        jobs.END_ATTEMPT,
        {**ended, **about, "stopped_by": "", "outcome": "failed", "reason": "test"},
    )

    assert not scanned_whole(steps, "jobs_attempt")
    assert rows_read(steps, "jobs_attempt") == 1


def test_ends_are_noted_of_the_open_attempts_of_these_jobs_alone(pilots: None) -> None:
    running = Attempt.objects.filter(outcome="").order_by("pk")[:20]
    job_ids = list(running.values_list("job_id", flat=True))

    steps = explain(jobs.NOTE_ENDS, [job_ids])

    assert not scanned_whole(steps, "jobs_attempt")
    assert rows_read(steps, "jobs_attempt") == 20


def test_inputs_are_found_by_their_names_in_a_workspace(pilots: None) -> None:
    _files_of_many()
    workspace = Workspace.objects.earliest("pk").pk

    steps = explain(
        jobs.FIND_INPUTS.format(blob="blob.sha256"),
        {"workspace_id": workspace, "paths": ["f1", "f2", "none"]},
    )

    assert not scanned_whole(steps, "jobs_workspacefile")
    assert rows_read(steps, "jobs_workspacefile") == 2
