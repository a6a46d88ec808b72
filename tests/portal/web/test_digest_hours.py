"""Hour and time zone of daily digests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client

from portal.personal.services import save_preferences
from tests.wms.notices.hearing import channel
from wms.core.actors import Actor
from wms.core.models import AuditEntry, User
from wms.notices.models import Channel

PAGE = "/account/?tab=notifications"
BERLIN = "Europe/Berlin"


def _daily_webhook(user: User) -> Channel:
    return channel(user, "webhook", url="https://hooks.example.org/in", pace="daily")


def test_the_hour_of_a_daily_digest_is_chosen_in_the_zone_of_ones_times(
    people: SimpleNamespace, alice: Client
) -> None:
    actor = Actor.person(people.alice)
    save_preferences({"time_zone": BERLIN}, actor=actor)
    row = _daily_webhook(people.alice)

    page = alice.get(PAGE).content.decode()
    given = {
        "action": "change",
        "pace": "daily",
        "digest_hour": "6",
        "digest_zone": BERLIN,
    }
    answer = alice.post(f"/account/channels/{row.pk}/", given)

    row.refresh_from_db()
    assert "<option>Europe/Berlin</option>" in page
    assert '<option value="7" selected>07:00</option>' in page
    assert (answer.status_code, row.digest_hour, row.digest_zone) == (302, 6, "Europe/Berlin")
    [entry] = AuditEntry.objects.filter(action="change channel")
    assert entry.facts["daily"] == ["7:00 UTC", "6:00 Europe/Berlin"]
    assert "<option selected>Europe/Berlin</option>" in alice.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("hour", "zone"),
    [("24", "UTC"), ("-1", "UTC"), ("6", "../../etc/passwd"), ("6", "Mars/Olympus")],
)
def test_an_hour_and_a_zone_that_there_are_not_are_refused(
    people: SimpleNamespace, alice: Client, hour: str, zone: str
) -> None:
    row = _daily_webhook(people.alice)

    given = {"action": "change", "digest_hour": hour, "digest_zone": zone}
    answer = alice.post(f"/account/channels/{row.pk}/", given)

    row.refresh_from_db()
    assert (answer.status_code, row.digest_hour, row.digest_zone) == (400, 7, "UTC")
