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
from wms.pilots.models import Pilot, PilotCheck
from wms.pilots.pressure.backoff import note_failure
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import ElementContact
from wms.sites.models import Queue, Site

PILOTS = "/api/v1/pilots/"


@pytest.fixture
def site(db: None) -> Site:
    return factories.site("UW", queues=["short"])


@pytest.fixture
def sam(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(people.sam)


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


def test_a_test_pilot_is_sent_from_the_page_of_its_queue_and_tells_its_report(
    site: Site, sam: Client, alice: Client
) -> None:
    page = sam.get("/sites/UW/queues/short/").content.decode()
    assert 'action="/sites/UW/queues/short/test/"' in page
    assert 'action="/sites/UW/queues/short/test/"' not in (
        alice.get("/sites/UW/queues/short/").content.decode()
    )

    sent = sam.post("/sites/UW/queues/short/test/", {"reason": "new nodes"})

    pilot = Pilot.objects.get()
    assert sent["Location"] == f"/pilots/{pilot.pk}/"
    report = sam.get(sent["Location"]).content.decode()
    assert f"by {pilot.events.get().actor}" in report
    assert '<span class="reason">new nodes</span>' in report
    assert "takes none" in report


def test_a_second_test_is_refused_with_a_link_to_the_first(site: Site, sam: Client) -> None:
    sam.post("/sites/UW/queues/short/test/", {"reason": "new nodes"})
    pilot = Pilot.objects.get()

    again = sam.post("/sites/UW/queues/short/test/", {"reason": "new nodes"})

    assert again.status_code == 409
    assert f'id="test-{pilot.pk}" href="/pilots/{pilot.pk}/"' in again.content.decode()
    assert Pilot.objects.count() == 1


@pytest.mark.parametrize(
    ("state", "checks", "verdict"),
    [
        ("aborted", {}, "Never started:"),
        ("failed", {"disk": False, "clock": True}, "Unfit: disk"),
        ("done", {"disk": True, "clock": True}, "Fit: all 2 checks passed"),
    ],
)
def test_the_report_tells_its_verdict(
    site: Site, sam: Client, state: str, checks: dict[str, bool], verdict: str
) -> None:
    now = timezone.now()
    pilot = Pilot.objects.create(
        queue=site.queues.get(),
        batch="batch",
        state=state,
        state_reason="the reason of its end",
        token_sha256="x",
        test="checks",
        ended_at=now,
        registered_at=now if checks else None,
    )
    for name, is_ok in checks.items():
        PilotCheck.objects.create(
            pilot=pilot, name=name, is_ok=is_ok, seconds=1, key=name, reason="too little"
        )

    report = sam.get(f"/pilots/{pilot.pk}/").content.decode()

    assert verdict in text_of(report, "verdict")
    assert "the reason of its end" in report


def test_a_queue_without_pilots_says_so_where_a_test_may_be_sent(site: Site, sam: Client) -> None:
    assert 'id="queue-closed"' not in sam.get("/sites/UW/queues/short/").content.decode()

    Queue.objects.update(is_enabled=False)

    assert 'id="queue-closed"' in sam.get("/sites/UW/queues/short/").content.decode()


def test_a_pilot_that_waits_for_a_silent_batch_system_tells_why_on_every_page(
    site: Site, alice: Client
) -> None:
    queue, now = site.queues.get(), timezone.now()
    waiting, called = factories.queued_pilot(queue), factories.pilot(queue)
    note_failure(queue, ElementContact.Kind.SUBMIT, "no such host", now=now, jitter=0)

    told = {each["uuid"]: each["unanswered"] for each in alice.get(PILOTS).json()["results"]}
    pages = {
        address: alice.get(address).content.decode()
        for address in ("/sites/UW/", "/sites/UW/queues/short/", f"/pilots/{waiting.pk}/")
    }

    assert told == {str(waiting.uuid): "no such host", str(called.uuid): ""}
    assert all("no such host" in page for page in pages.values())
    assert "no such host" not in alice.get(f"/pilots/{called.pk}/").content.decode()
    assert "no answer" in pages["/sites/UW/"]
    assert "no answer" in pages["/sites/UW/queues/short/"]
