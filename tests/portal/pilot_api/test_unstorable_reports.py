"""Reports that the database cannot store end their attempt, so that nothing waits behind them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import OperationalError, connection

from tests import factories
from tests.portal.pilot_api.pilot_client import ENDED, PilotClient
from wms.jobs.models import Attempt, Job, WorkspaceFile

pytestmark = pytest.mark.django_db

#: A directory and a name of which each can be, but not one below the other.
DEEP = "/".join(["d" * 255] * 3 + ["d" * 250])


def the_database_says(code: str) -> None:
    """Let every write into a workspace fail with this SQLSTATE."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '{code}'; END $$;
            CREATE TRIGGER fail BEFORE INSERT ON jobs_workspacefile
            FOR EACH ROW EXECUTE FUNCTION fail();
            """
        )


def test_a_job_whose_files_have_no_place_fails_before_it_runs_and_others_are_claimed(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    first = make_job()
    factories.describe(
        Job.objects.filter(pk=first), directory=DEEP, stdout_name="s" * 100, input_files=[]
    )

    answer = registered.ask().json()

    assert answer["job"] is None
    assert "1026 bytes" in answer["reason"]
    job = Job.objects.get(pk=first)
    assert (job.state, job.attempts.get().outcome) == ("failed", "failed")
    assert job.state_reason in answer["reason"]


@pytest.mark.parametrize("field", ["output_files", "stdout_name", "stderr_name"])
def test_a_job_whose_files_have_no_place_at_its_end_fails_with_the_reason(
    registered: PilotClient, attempt: str, job_id: int, field: str
) -> None:
    registered.put(f"{attempt}/files/output/out.txt", b"x")
    registered.put(f"{attempt}/files/stdout/stdout", b"words")
    name = ["out.txt"] if field == "output_files" else "s" * 100
    directory = DEEP if field != "output_files" else f"{DEEP}/d"
    factories.describe(Job.objects.filter(pk=job_id), directory=directory, **{field: name})

    answer = registered.post(f"{attempt}/report", ENDED)

    assert answer.json() == {"accepted": True}
    job = Job.objects.get()
    assert (job.state, job.attempts.get().outcome) == ("failed", "failed")
    assert "at most 1024" in job.state_reason
    assert not WorkspaceFile.objects.exclude(attempt=None).exists()


def test_a_report_of_values_that_cannot_be_stored_fails_the_job_and_frees_the_slot(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    first, second = make_job(), make_job()
    job = registered.claim()
    taken = f"jobs/{job['job']}/{job['attempt']}"
    # The next hold does not fit its column.
    Job.objects.filter(pk=job["job"]).update(hold_count=32767)
    factories.describe(Job.objects.filter(pk=job["job"]), periodic={"on_exit_hold": "true"})

    answer = registered.post(f"{taken}/report", ENDED)

    assert answer.status_code == 409
    failed = Job.objects.get(pk=job["job"])
    assert failed.state == "failed"
    assert "DataErr" in failed.state_reason
    assert failed.attempts.get().outcome == "failed"
    assert registered.post(f"{taken}/report", ENDED).json() == {"accepted": True}
    assert registered.claim()["job"] == {first, second}.difference([job["job"]]).pop()


@pytest.mark.parametrize("code", ["23514", "21000", "42703"], ids=["check", "twice", "no column"])
def test_what_is_not_the_jobs_own_fault_lets_it_run_again(
    registered: PilotClient, attempt: str, code: str
) -> None:
    registered.put(f"{attempt}/files/output/out.txt", b"x")
    the_database_says(code)

    answer = registered.post(f"{attempt}/report", ENDED)

    assert answer.status_code == 409
    assert "not this one" in answer.json()["detail"]
    job = Job.objects.get()
    assert job.state in ("received", "waiting")
    assert Attempt.objects.get().outcome == "lost"


@pytest.mark.parametrize("code", ["57014", "40P01", "53100"], ids=["stopped", "deadlock", "full"])
def test_what_the_database_cannot_do_now_changes_nothing_and_may_come_again(
    registered: PilotClient, attempt: str, code: str
) -> None:
    registered.put(f"{attempt}/files/output/out.txt", b"x")
    the_database_says(code)

    with pytest.raises(OperationalError):
        registered.post(f"{attempt}/report", ENDED)

    assert Attempt.objects.get().outcome == ""
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER fail ON jobs_workspacefile")
    assert registered.post(f"{attempt}/report", ENDED).json() == {"accepted": True}
    assert Job.objects.get().state == "done"
