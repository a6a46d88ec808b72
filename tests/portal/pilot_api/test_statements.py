"""SQL statements per message of a pilot: thousands of pilots send them all the time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import factories
from tests.portal.pilot_api.pilot_client import ENDED, OFFER, PilotClient
from tests.statements import carried_out_by
from wms.jobs.models import Attempt, Job

pytestmark = pytest.mark.django_db

#: Credential, pilot, its attempts, limits, draw; then the job's change with its event, the job, the
#: attempt, its inputs.
CLAIM = 9
CLAIM_IN_VAIN = 7
#: Credential, the job's lock, the attempt and its files; then the job's start, of which nothing was
#: told before, the attempt's end, and the job's end. A change and its entries are one statement.
END = ["SELECT"] * 6


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_heartbeat_is_one_statement(
    registered: PilotClient, make_job: Callable[..., int], jobs: int
) -> None:
    told = []
    for _ in range(jobs):
        make_job()
        claimed = registered.claim()
        usage = {"wall_s": 1.5, "cpu_s": 1.0, "memory_mb": 100}
        told.append({"job": claimed["job"], "attempt": claimed["attempt"], "usage": usage})
    body = {"jobs": told, "load": {"load_1min": 1.0}, "sequence": 1}

    assert carried_out_by(lambda: registered.post("heartbeat", body)) == ["SELECT"]


def test_a_claim_is_so_many_statements_however_many_jobs_wait(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    make_job()
    few = carried_out_by(lambda: registered.claim(cores=1))
    end_all(registered)
    for _ in range(20):
        make_job()
    many = carried_out_by(lambda: registered.claim(cores=1))

    assert few == many
    assert len(few) == CLAIM


def test_a_job_without_files_costs_so_many_statements_in_all(
    registered: PilotClient, job_id: int
) -> None:
    factories.describe(Job.objects.all(), executable="/bin/true", input_files=[], output_files=[])

    claimed = carried_out_by(lambda: registered.claim(cores=1))
    job = Attempt.objects.get()
    path = f"jobs/{job.job_id}/{job.number}/report"
    ended = carried_out_by(lambda: registered.post(path, ENDED))

    assert len(claimed) == CLAIM - 1
    assert ended == END


def test_a_report_that_claims_looks_at_the_credential_once(
    registered: PilotClient, make_job: Callable[..., int]
) -> None:
    make_job()
    make_job()
    factories.describe(Job.objects.all(), output_files=[])
    job = registered.claim()
    body = ENDED | {"claim": OFFER | {"claim": "ab" * 16}}

    both = carried_out_by(
        lambda: registered.post(f"jobs/{job['job']}/{job['attempt']}/report", body)
    )

    assert len(both) == len(END) + CLAIM - 1


def test_a_claim_in_vain_is_a_handful_of_statements(registered: PilotClient) -> None:
    assert len(carried_out_by(lambda: registered.ask())) == CLAIM_IN_VAIN


def test_a_piece_of_output_is_a_handful_of_statements(
    registered: PilotClient, attempt: str
) -> None:
    registered.request("POST", f"{attempt}/streams/stdout?offset=0", b"one")

    sent = carried_out_by(
        lambda: registered.request("POST", f"{attempt}/streams/stdout?offset=3", b"two")
    )

    assert sent == ["SELECT", "SELECT", "SELECT", "UPDATE"]


def end_all(client: PilotClient) -> None:
    """Free the pilot's slot."""
    for attempt in Attempt.objects.filter(outcome=""):
        client.post(
            f"jobs/{attempt.job_id}/{attempt.number}/report",
            {"event": "not_run", "reason": "test"},
        )
