"""Queue page: pressure and its limits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from wms.core.models import User
from wms.pilots.models import Pilot
from wms.pilots.pressure.backoff import note_failure
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import ElementContact
from wms.sites.models import Queue, Site


@pytest.fixture
def site(db: None) -> Site:
    return factories.site("UW", queues=["short"])


@pytest.fixture
def alice(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(people.alice)


def test_the_page_tells_what_is_wanted_granted_and_why_not_more(site: Site, alice: Client) -> None:
    Queue.objects.update(max_pilots=1)
    factories.running_dag(User.objects.get(username="alice"), node_count=5)
    plan_requests(timezone.now())

    page = alice.get("/sites/UW/queues/short/").content.decode()
    overview = alice.get("/sites/UW/").content.decode()

    assert '<dd id="pressure-wanted">5 ' in page
    assert '<dd id="pressure-granted">1 ' in page
    assert "queue limit 1" in page
    assert "queue limit 1" in overview
    assert 'href="/sites/UW/queues/short/"' in overview


def test_a_batch_system_that_does_not_answer_is_shown_with_its_back_off(
    site: Site, alice: Client
) -> None:
    now = timezone.now()
    note_failure(site.queues.get(), ElementContact.Kind.SUBMIT, "quota exceeded", now=now, jitter=0)
    plan_requests(now + timedelta(seconds=1))

    page = alice.get("/sites/UW/queues/short/").content.decode()

    assert "Submission fails" in page
    assert "quota exceeded" in page
    assert "back-off until" in page


def test_a_queue_that_is_not_there_is_not_found(site: Site, alice: Client) -> None:
    answer = alice.get("/sites/UW/queues/long/")

    assert answer.status_code == 404
    assert "queue long" in answer.content.decode()


def test_the_api_tells_the_same(site: Site, alice: Client) -> None:
    factories.running_dag(User.objects.get(username="alice"), node_count=5)
    plan_requests(timezone.now())

    told = alice.get("/api/v1/sites/UW/queues/short/pressure/").json()
    history = alice.get("/api/v1/sites/UW/queues/short/pressure/history/").json()

    assert (told["site"], told["queue"], told["troubles"]) == ("UW", "short", [])
    assert told["request"]["wanted"] == 5
    assert told["request"]["lease_until"] > told["request"]["updated_at"]
    assert [record["wanted"] for record in history["results"]] == [5]


def test_a_queue_of_private_pilots_tells_for_whom_they_are(
    site: Site, alice: Client, people: SimpleNamespace
) -> None:
    Queue.objects.update(is_private=True)
    factories.job(people.alice)
    plan_requests(timezone.now())
    Pilot.objects.create(queue=site.queues.get(), batch="b", owner=people.bob, secret_sha256="x")

    page = alice.get("/sites/UW/queues/short/").content.decode()

    rows = text_of(page, "owners").split()
    assert rows[rows.index("alice") :][:6] == ["alice", "1", "100", "%", "0", "0"]
    assert rows[rows.index("bob") :][:6] == ["bob", "0", "0", "%", "1", "0"]
    assert "the jobs of one owner" in page
