"""URLs of jobs at the pilot API: what a claim tells of them, and how ends by them are reported."""

from __future__ import annotations

import json

import pytest
from django.core import serializers
from django.db import transaction

from tests.portal.pilot_api.pilot_client import ENDED, PilotClient
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.binding.scopes import NOWHERE
from wms.jobs.models import Attempt, Job, JobEvent, Workspace
from wms.jobs.operations import enqueue_again
from wms.pilots.credentials.sealing import new_key
from wms.placement.catalogue.models import LogicalFile, Replica
from wms.placement.credential_models import PlacementCredential
from wms.placement.credentials import NewCredential, set_credential
from wms.placement.storages.models import Storage
from wms.taskqueues.models import WaitingJob
from wms.taskqueues.operations import withdraw

pytestmark = pytest.mark.django_db

SECRET = "open-sesame"
URLS = {"a": "https://x.org/a?signed=1", "in.txt": "http://y.org:8080/in.txt"}


@pytest.fixture
def url_job(job_id: int, settings) -> Job:
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}
    job = Job.objects.get(pk=job_id)
    job.give(directives={"input_urls": URLS}, input_files=[])
    job.save(update_fields=["own"])
    return job


def test_a_claim_tells_sources_and_the_owners_credential_to_the_endpoint_alone(
    registered: PilotClient, url_job: Job
) -> None:
    alice, bob = User.objects.get(username="alice"), User.objects.create_user("bob")
    for owner, secret in ((alice, SECRET), (bob, "other")):
        new = NewCredential("https://x.org", token=secret)
        set_credential(new, owner=owner, actor=Actor.person(owner))

    job = registered.claim()

    inputs = {each["path"]: each.get("sources") for each in job["inputs"]}
    assert inputs == {
        "run.sh": None,
        "a": [{"url": URLS["a"], "authorization": f"Bearer {SECRET}"}],
        "in.txt": [{"url": URLS["in.txt"], "authorization": ""}],
    }
    rules = job["transfer_rules"]
    assert {"limit_s", "stall_s", "file_bytes", "allowed", "refused"} == set(rules)
    assert "169.254.0.0/16" in rules["refused"]
    rows = [*JobEvent.objects.all(), *Attempt.objects.all(), *Job.objects.all()]
    assert SECRET not in serializers.serialize("json", rows)


def test_a_credential_that_cannot_be_opened_fails_the_job(
    registered: PilotClient, url_job: Job, settings
) -> None:
    alice = User.objects.get(username="alice")
    new = NewCredential("https://x.org", token=SECRET)
    set_credential(new, owner=alice, actor=Actor.person(alice))
    assert PlacementCredential.objects.exists()
    settings.PILOTAGE = settings.PILOTAGE | {"CREDENTIAL_KEYS": new_key()}

    assert registered.ask().json()["job"] is None

    url_job.refresh_from_db()
    assert (url_job.state, url_job.state_cause) == ("failed", "fetch")


def test_a_transfer_that_may_do_elsewhere_sends_the_job_there(
    registered: PilotClient, url_job: Job
) -> None:
    registered.claim()
    report = {"event": "not_run", "reason": "x.org is away", "failed_transfer": "fetch"}

    for _ in range(2):
        answer = registered.post(f"jobs/{url_job.pk}/1/report", report)
        assert answer.json() == {"accepted": True}

    url_job.refresh_from_db()
    assert (url_job.state, url_job.state_cause) == ("waiting", "fetch")
    assert Attempt.objects.get().outcome == "not_run"
    event = JobEvent.objects.get(job_id=url_job.pk, event="reschedule")
    assert event.cause == "fetch"


def test_a_report_with_an_unknown_cause_is_refused(registered: PilotClient, url_job: Job) -> None:
    registered.claim()
    report = {"event": "not_run", "reason": "x", "failed_transfer": "payload"}

    answer = registered.post(f"jobs/{url_job.pk}/1/report", report)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "failed_transfer"


def test_of_an_s3_store_a_pilot_gets_signed_links_and_no_key(
    registered: PilotClient, url_job: Job, settings
) -> None:
    placement = settings.PILOTAGE["PLACEMENT"] | {"S3_URL": "https://s3.example.org"}
    settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}
    alice = User.objects.get(username="alice")
    new = NewCredential("s3://runs", "key-id", SECRET)
    set_credential(new, owner=alice, actor=Actor.person(alice))
    urls = {"input_urls": {"a": "s3://runs/d/a"}, "output_urls": {"out.txt": "s3://other/out"}}
    url_job.give(directives=urls)
    url_job.save(update_fields=["own"])

    job = registered.claim()

    [source] = next(each["sources"] for each in job["inputs"] if each["path"] == "a")
    assert source["url"].startswith("https://s3.example.org/runs/d/a?X-Amz-Algorithm=")
    [target] = job["output_urls"]
    assert target["url"] == "https://s3.example.org/other/out"
    assert SECRET not in json.dumps(job)


def test_without_a_store_a_job_of_s3_fails(registered: PilotClient, url_job: Job) -> None:
    url_job.give(directives={"input_urls": {"a": "s3://runs/d/a"}})
    url_job.save(update_fields=["own"])

    assert registered.ask().json()["job"] is None

    url_job.refresh_from_db()
    assert (url_job.state, url_job.state_cause) == ("failed", "fetch")


@pytest.fixture
def logical_file(url_job: Job, queue) -> LogicalFile:
    """With replicas at a, near no site, by WebDAV, and at b, near the pilot's site."""
    alice = User.objects.get(username="alice")
    url_job.give(directives={"input_urls": {"7": "lfn:/run/7"}})
    url_job.save(update_fields=["own"])
    file = LogicalFile.objects.create(name="/run/7", owner=alice, size_bytes=3, sha256="ab" * 32)
    endpoints = {"a": "davs://a.org/top/", "b": "ftp://b.org/\nhttp://b.org:8080/d/"}
    for name, text in endpoints.items():
        storage = Storage.objects.create(name=name, endpoints=text)
        Replica.objects.create(file=file, storage=storage)
    storage.sites.add(queue.site)
    return file


def test_a_logical_name_leads_to_its_replicas_those_near_the_site_first(
    registered: PilotClient, logical_file: LogicalFile
) -> None:
    new = NewCredential("davs://a.org", token=SECRET)
    set_credential(new, owner=logical_file.owner, actor=Actor.person(logical_file.owner))

    job = registered.claim()

    [told] = [each for each in job["inputs"] if each["path"] == "7"]
    assert told == {
        "path": "7",
        "sha256": logical_file.sha256,
        "sources": [
            {"url": "http://b.org:8080/d/run/7", "authorization": ""},
            {"url": "https://a.org/top/run/7", "authorization": f"Bearer {SECRET}"},
        ],
    }


def test_a_logical_name_without_a_replica_that_pilots_read_fails_the_job(
    registered: PilotClient, logical_file: LogicalFile, url_job: Job
) -> None:
    Storage.objects.update(endpoints="ftp://b.org/")

    assert registered.ask().json()["job"] is None

    url_job.refresh_from_db()
    assert (url_job.state, url_job.state_cause) == ("failed", "fetch")


def test_an_end_that_tells_of_no_sent_outputs_fails_a_job_that_sends_some(
    registered: PilotClient, job_id: int
) -> None:
    job = Job.objects.get(pk=job_id)
    job.give(directives={"output_urls": {"out.txt": "https://x.org/out"}})
    job.save(update_fields=["own"])

    told = registered.claim()
    registered.post(f"jobs/{job_id}/1/report", ENDED)

    assert told["output_urls"] == [
        {"path": "out.txt", "url": "https://x.org/out", "authorization": ""}
    ]
    assert told["success_code"] == 0
    job.refresh_from_db()
    assert (job.state, job.state_cause) == ("failed", "send")


def test_an_output_that_went_to_its_url_is_not_missing(
    registered: PilotClient, job_id: int
) -> None:
    job = Job.objects.get(pk=job_id)
    job.give(directives={"output_urls": {"out.txt": "https://x.org/out"}})
    job.save(update_fields=["own"])

    registered.claim()
    registered.post(f"jobs/{job_id}/1/report", ENDED | {"sent_to_urls": 1})

    job.refresh_from_db()
    assert job.state == "done", job.state_reason


def test_a_job_whose_last_replica_has_just_gone_waits_and_has_lost_no_attempt(
    registered: PilotClient, url_job: Job, logical_file: LogicalFile
) -> None:
    # As it was when it began to wait: nobody has followed the change yet.
    enqueue_again_as_new(url_job)
    attempts = url_job.max_attempts
    Replica.objects.all().delete()

    assert registered.ask().json()["job"] is None

    url_job.refresh_from_db()
    assert (url_job.state, url_job.state_cause) == ("waiting", "inputs")
    assert url_job.max_attempts - url_job.attempt_number == attempts
    assert WaitingJob.objects.get(pk=url_job.pk).task_queue.sites == list(NOWHERE)
    assert registered.ask().json()["job"] is None
    assert Attempt.objects.get().outcome == "not_run"


def enqueue_again_as_new(job: Job) -> None:
    """Let a waiting job join a TaskQueue by what its description says now."""
    with transaction.atomic():
        withdraw([job.pk])
        enqueue_again([job.pk])


def test_a_job_that_a_limited_token_has_submitted_gets_no_credential_of_its_owner(
    registered: PilotClient, url_job: Job
) -> None:
    alice = User.objects.get(username="alice")
    new = NewCredential("https://x.org", token=SECRET)
    set_credential(new, owner=alice, actor=Actor.person(alice))
    Workspace.objects.filter(pk=url_job.workspace_id).update(limited_to=1)

    assert registered.ask().json()["job"] is None

    url_job.refresh_from_db()
    assert (url_job.state, url_job.state_cause) == ("failed", "fetch")
