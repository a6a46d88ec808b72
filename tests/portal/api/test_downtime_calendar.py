"""Calendar of downtimes: by a token in its address, read again by others and by the import."""

from __future__ import annotations

from datetime import UTC, timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from icalendar import Calendar
from rest_framework.test import APIClient

from tests import factories
from wms.core.actors import Actor
from wms.core.tokens import create_token
from wms.exchange.downtimes.calendars import read_calendar
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import cancel_downtimes

URL = "/api/v1/downtimes.ics"
NASTY = "new disks, 50 % more;\nEND:VEVENT\n" + "\N{LATIN SMALL LETTER E WITH ACUTE}" * 90


@pytest.fixture
def downtime(people: SimpleNamespace) -> Downtime:
    """A downtime whose reason would end the event, were it not escaped."""
    now = timezone.now().replace(microsecond=0)
    return Downtime.objects.create(
        site=factories.site("UW"), start=now + timedelta(hours=1), end=now + timedelta(hours=3),
        reason=NASTY, author="sam", lead_time_s=600,
    )  # fmt: skip


def token(people: SimpleNamespace, *scopes: str) -> str:
    actor = Actor.person(people.alice)
    return create_token(people.alice, name="calendar", actor=actor, scopes=scopes)


def test_a_program_subscribes_with_a_token_in_the_address(
    downtime: Downtime, people: SimpleNamespace
) -> None:
    answer = APIClient().get(f"{URL}?token={token(people, 'read')}")

    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/calendar; charset=utf-8"
    assert all(len(line) <= 75 for line in answer.content.split(b"\r\n"))
    [event] = Calendar.from_ical(answer.content).walk("VEVENT")
    assert (event["dtstart"].dt, event["dtend"].dt) == (downtime.start, downtime.end)
    assert str(event["uid"]) == f"downtime-{downtime.pk}@testserver"
    assert NASTY in str(event["description"])
    assert str(event["url"]) == f"http://testserver/downtimes/{downtime.pk}/"


def test_the_import_reads_what_is_exported(downtime: Downtime, alice: APIClient) -> None:
    text = alice.get(URL).content.decode()

    [entry] = read_calendar(text, zone="UTC", now=timezone.now())

    assert (entry.start, entry.end) == (downtime.start, downtime.end)
    assert entry.start.tzinfo == UTC


def test_a_cancelled_one_says_so_and_one_of_long_ago_is_left_out(
    downtime: Downtime, people: SimpleNamespace, alice: APIClient
) -> None:
    long_ago = timezone.now() - timedelta(days=40)
    Downtime.objects.create(
        site=downtime.site, start=long_ago, end=long_ago + timedelta(hours=1), reason="old",
        author="sam",
    )  # fmt: skip
    cancel_downtimes(
        [downtime.pk], actor=Actor.person(people.sam), reason="done", now=timezone.now()
    )

    events = Calendar.from_ical(alice.get(f"{URL}?site=UW").content).walk("VEVENT")

    assert [str(each["status"]) for each in events] == ["CANCELLED"]


def test_only_a_token_that_reads_alone_is_taken_from_an_address(
    downtime: Downtime, people: SimpleNamespace
) -> None:
    client = APIClient()

    assert client.get(URL).status_code == 401
    assert client.get(f"{URL}?token=plt_none_none").status_code == 401
    assert client.get(f"{URL}?token={token(people, 'read', 'site')}").status_code == 403
    assert client.get(f"/api/v1/downtimes/?token={token(people, 'read')}").status_code == 401


def test_what_makes_no_sense_is_refused(downtime: Downtime, alice: APIClient) -> None:
    assert alice.get(f"{URL}?site=Nowhere").status_code == 404
    assert alice.get(f"{URL}?sites=UW").json()["findings"][0]["field"] == "sites"
    assert alice.get(f"{URL}?site=%00").status_code == 400
