"""Sites with their ads, and pilots with what they ran."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from wms.core.models import User
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import end_pilot
from wms.sites.models import Queue


@pytest.fixture
def sam(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    return as_user(people.sam)


def test_sites_come_by_name_with_their_queues(alice: APIClient) -> None:
    for name in ("Wisconsin", "Florida", "Caltech"):
        factories.site(name, queues=("long", "short"))

    first = alice.get("/api/v1/sites/?page_size=2").json()
    second = alice.get(first["next"]).json()

    assert [site["name"] for site in first["results"]] == ["Caltech", "Florida"]
    assert [site["name"] for site in second["results"]] == ["Wisconsin"]
    assert [queue["name"] for queue in first["results"][0]["queues"]] == ["long", "short"]
    assert "settings" not in first["results"][0]["queues"][0]


def test_a_site_is_shown_with_its_ad_once_it_is_published(alice: APIClient) -> None:
    factories.site("Florida")

    before = alice.get("/api/v1/sites/Florida/").json()
    factories.turn()
    after = alice.get("/api/v1/sites/Florida/").json()

    assert before["ad"] is None
    assert 'Name = "Florida"' in after["ad"]["text"]
    assert after["ad"]["sequence"] > 0


def test_a_site_that_is_not_there_is_not_found(alice: APIClient) -> None:
    assert alice.get("/api/v1/sites/Nowhere/").status_code == 404
    assert alice.get("/api/v1/sites/No%00where/").status_code == 404


def test_pilots_are_narrowed_by_state_and_site(alice: APIClient) -> None:
    here, there = factories.site("Here"), factories.site("There")
    running = factories.pilot(here.queues.get())
    queued = factories.queued_pilot(there.queues.get())

    def uuids(query: str) -> list[str]:
        answer = alice.get(f"/api/v1/pilots/{query}")
        return [pilot["uuid"] for pilot in answer.json()["results"]]

    assert uuids("") == [str(queued.uuid), str(running.uuid)]
    assert uuids("?state=running") == [str(running.uuid)]
    assert uuids("?site=There") == [str(queued.uuid)]


def test_a_pilot_is_shown_without_its_secrets(alice: APIClient) -> None:
    pilot = factories.pilot()

    shown = alice.get(f"/api/v1/pilots/{pilot.uuid}/").json()

    assert (shown["site"], shown["state"]) == ("UW", "running")
    assert shown["node"]["hostname"] == "node1"
    assert not {name for name in shown if "secret" in name or "token" in name}


def test_a_pilot_tells_what_of_its_slot_is_free(alice: APIClient, people: SimpleNamespace) -> None:
    pilot = factories.pilot()
    address = f"/api/v1/pilots/{pilot.uuid}/"
    Queue.objects.update(cores=8, memory_mb=16_000, gpus=2)
    given = {"slot_cores": 4, "slot_memory_mb": 20_000, "slot_gpus": 2, "disk_mb": 90}
    Pilot.objects.update(node=pilot.node | given)
    factories.job(people.alice)
    factories.claim(pilot)
    Attempt.objects.update(cores=3, memory_mb=2000, gpus=2, disk_mb=60)

    assert alice.get(address).json()["slot"] == {
        "offered": {"cores": 8, "memory_mb": 16_000, "gpus": 2, "disk_mb": None},
        "given": {"cores": 4, "memory_mb": 20_000, "gpus": 2, "disk_mb": 90},
        "held": {"cores": 3, "memory_mb": 2000, "gpus": 2, "disk_mb": 60},
        "free": {"cores": 1, "memory_mb": 14_000, "gpus": 0, "disk_mb": 30},
    }
    assert alice.get(f"{address}attempts/").json()["results"][0]["cores"] == 3
    Queue.objects.update(cores=2)
    assert alice.get(address).json()["slot"]["free"]["cores"] == 0
    end_pilot(pilot, end="idle", detail="", now=timezone.now())
    assert alice.get(address).json()["slot"]["free"] == {
        "cores": 0, "memory_mb": 0, "gpus": 0, "disk_mb": 0,
    }  # fmt: skip


def test_what_a_pilot_was_given_is_unknown_until_it_calls_in(alice: APIClient) -> None:
    pilot = factories.queued_pilot()

    slot = alice.get(f"/api/v1/pilots/{pilot.uuid}/").json()["slot"]

    assert slot["given"] is None
    assert slot["free"]["cores"] == 0 < slot["offered"]["cores"]


def test_a_pilot_tells_what_it_ran_and_what_happened_to_it(
    alice: APIClient, people: SimpleNamespace
) -> None:
    job = factories.job(people.alice)
    pilot = factories.pilot()
    factories.run_job(pilot)

    attempts = alice.get(f"/api/v1/pilots/{pilot.uuid}/attempts/").json()["results"]
    events = alice.get(f"/api/v1/pilots/{pilot.uuid}/events/").json()["results"]

    assert [(each["job"], each["outcome"]) for each in attempts] == [(job.pk, "done")]
    assert [event["event"] for event in events] == ["register"]


def test_a_pilot_that_is_not_there_is_not_found(alice: APIClient) -> None:
    for path in ("", "events/", "attempts/"):
        assert alice.get(f"/api/v1/pilots/{uuid.uuid4()}/{path}").status_code == 404


def test_the_connection_of_a_queue_is_tested_once_at_a_time_and_told(sam: APIClient) -> None:
    factories.site("Here")
    queue = "/api/v1/sites/Here/queues/short/"

    asked = sam.post(f"{queue}connection-tests/", {}, format="json")
    again = sam.post(f"{queue}connection-tests/", {"reason": "twice"}, format="json")
    told = sam.get(f"{queue}pressure/").json()["connection_test"]
    page = Client()
    page.force_login(User.objects.get(username="sam"))

    assert (asked.status_code, again.status_code) == (202, 409)
    assert (told["outcome"], told["asked_by"], told["ended_at"]) == ("", "sam", None)
    assert 'id="connection"' in page.get("/sites/Here/queues/short/").content.decode()


def test_a_test_pilot_is_sent_and_a_second_one_refused_with_the_name_of_the_first(
    sam: APIClient,
) -> None:
    factories.site("Here")
    address = "/api/v1/sites/Here/queues/short/test-pilots/"

    sent = sam.post(address, {"reason": "new nodes"}, format="json")
    again = sam.post(address, {"reason": "new nodes", "takes_jobs": True}, format="json")

    assert sent.status_code == 201
    made = sent.json()
    assert (made["state"], made["test"], made["test_verdict"]) == ("submitted", "checks", "waiting")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/open-test/")
    assert again.json()["pilot"] == made["uuid"]
    assert (
        sam.post(address.replace("short", "none"), {"reason": "x"}, format="json").status_code
        == 404
    )
