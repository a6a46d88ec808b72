"""Pages of downtimes: enter in any zone, calendar, change, end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.personal.services import save_preferences
from portal.web.sites.downtime_calendar import day_range_of, rows_of
from tests import factories
from wms.core.actors import Actor
from wms.core.models import AuditEntry, User
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.selectors import downtimes_between, listed_downtimes
from wms.sites.downtimes.services import add_downtime, add_downtimes, cancel_downtimes
from wms.sites.models import Site
from wms.sites.standing import standing_of

LIST, NEW = reverse("web:downtimes"), reverse("web:new-downtime")
CALENDAR = reverse("web:downtime-calendar")
BrowserOf = Callable[[User], Client]
HOUR = timedelta(hours=1)
_UTC, _BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")


@pytest.fixture
def sites(db: None) -> list[Site]:
    return [factories.site("UW"), factories.site("Florida")]


@pytest.fixture
def sam(people: SimpleNamespace, browser_of: BrowserOf) -> Client:
    """A shifter at his browser."""
    return browser_of(people.sam)


def entered(first_h: float, last_h: float, site: str = "UW", **how: Any) -> Downtime:
    now = timezone.now()
    return add_downtime(
        site,
        start=now + first_h * HOUR,
        end=now + last_h * HOUR,
        actor=factories.SYSTEM,
        now=now + min(first_h, 0) * HOUR,
        **{"reason": "new disks", **how},
    )


def form(first_h: float = 2, last_h: float = 4, **changes: Any) -> dict[str, Any]:
    now = timezone.now()
    times = {
        name: f"{now + hours * HOUR:%Y-%m-%dT%H:%M}"
        for name, hours in (("start", first_h), ("end", last_h))
    }
    return {
        **times,
        "zone": "UTC",
        "site": ["UW"],
        "lead_min": "90",
        "reason": "new disks",
        **changes,
    }


def text(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def test_a_shifter_enters_a_downtime_at_several_sites_at_once(
    sam: Client, sites: list[Site]
) -> None:
    answer = sam.post(NEW, form(site=["UW", "Florida"]), follow=True)

    made = Downtime.objects.order_by("site__name")
    assert [(each.site.name, each.lead_time_s, each.author) for each in made] == [
        ("Florida", 5400, "sam"),
        ("UW", 5400, "sam"),
    ]
    assert "Florida, UW" in text(answer)
    assert AuditEntry.objects.filter(action="add downtime", actor="sam").count() == 2


def test_a_downtime_closes_its_site_from_its_lead_time_on(sam: Client, sites: list[Site]) -> None:
    sam.post(NEW, form(1, 4, lead_min="120"))

    assert standing_of(sites[0], timezone.now()).kind == "downtime"
    assert "draining" in text(sam.get(LIST, {"saved": "none"}))


@pytest.mark.parametrize(
    ("zone", "start", "in_utc"),
    [
        ("UTC", "2099-07-01T10:00", datetime(2099, 7, 1, 10, tzinfo=UTC)),
        ("Europe/Berlin", "2099-07-01T10:00", datetime(2099, 7, 1, 8, tzinfo=UTC)),
        ("Europe/Berlin", "2099-01-01T10:00", datetime(2099, 1, 1, 9, tzinfo=UTC)),
        ("America/Chicago", "2099-01-01T10:00", datetime(2099, 1, 1, 16, tzinfo=UTC)),
    ],
)
def test_times_are_read_in_the_zone_of_the_form(
    sam: Client, sites: list[Site], zone: str, start: str, in_utc: datetime
) -> None:
    sam.post(NEW, form(zone=zone, start=start, end="2099-08-01T00:00"))

    assert Downtime.objects.get().start == in_utc


def test_the_form_asks_in_the_zone_of_the_user_and_says_so(
    sam: Client, people: SimpleNamespace, sites: list[Site]
) -> None:
    save_preferences({"time_zone": "Asia/Tokyo"}, actor=Actor.person(people.sam))

    page = text(sam.get(NEW))

    assert 'name="zone" value="Asia/Tokyo"' in page
    assert "<span data-zone-name>Asia/Tokyo</span>" in page


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({"start": "soon", "end": ""}, ["Give a time such as", "Give the end."]),
        ({"end": "2020-01-01T00:00"}, ["must be after the start"]),
        ({"start": "2020-01-01T00:00", "end": "2020-01-02T00:00"}, ["must be in the future"]),
        ({"reason": " "}, ["give a reason"]),
        ({"lead_min": "-5"}, ["A time cannot be negative."]),
        ({"lead_min": "999999"}, ["At most 30 days"]),
        ({"site": []}, ["choose 1 to 500 sites"]),
        ({"zone": "Mars/Olympus"}, ["There is no time zone"]),
        ({"zone": "../../etc/passwd"}, ["There is no time zone"]),
        (
            {"zone": "Europe/Berlin", "start": "2099-03-29T02:30", "end": "2099-04-01T00:00"},
            ["There is no such time in Europe/Berlin"],
        ),
    ],
)
def test_a_faulty_downtime_comes_back_with_its_faults_and_what_was_typed(
    sam: Client, sites: list[Site], changed: dict[str, Any], faults: list[str]
) -> None:
    body = form(**changed)

    answer = sam.post(NEW, body)

    page = text(answer)
    assert answer.status_code == 400
    for fault in faults:
        assert fault.lower() in page.lower()
    assert f'value="{body["start"]}"' in page
    assert not Downtime.objects.exists()


def test_an_overlap_is_told_before_anything_is_entered(sam: Client, sites: list[Site]) -> None:
    other = entered(3, 9, reason="cooling")

    warned = sam.post(NEW, form(2, 4))

    assert warned.status_code == 409
    assert "It overlaps 1 other" in text(warned)
    assert "cooling" in text(warned)
    assert list(Downtime.objects.all()) == [other]

    sam.post(NEW, form(2, 4, overlaps="wanted"))

    assert Downtime.objects.count() == 2


def test_a_downtime_next_to_another_does_not_overlap(sam: Client, sites: list[Site]) -> None:
    start = timezone.now().replace(second=0, microsecond=0) + 4 * HOUR
    add_downtime(
        "UW", start=start, end=start + HOUR, reason="x", actor=factories.SYSTEM, now=timezone.now()
    )

    answer = sam.post(NEW, form(2, 4))

    assert answer.status_code == 302


def test_a_downtime_is_ended_with_a_reason(sam: Client, sites: list[Site]) -> None:
    downtime = entered(-1, 4)
    page = reverse("web:downtime", args=[downtime.pk])
    assert f'action="{reverse("web:cancel-downtime", args=[downtime.pk])}"' in text(sam.get(page))
    address = reverse("web:cancel-downtime", args=[downtime.pk])

    assert sam.post(address, {"reason": " "}).status_code == 400
    done = sam.post(address, {"reason": "disks came early"}, follow=True)

    downtime.refresh_from_db()
    assert downtime.cancelled_by == "sam"
    assert "disks came early" in text(done)
    assert (
        standing_of(sites[0], timezone.now()).kind == "no queue"
        or not standing_of(sites[0], timezone.now()).kind
    )
    entry = AuditEntry.objects.get(action="cancel downtime")
    assert (entry.actor, entry.reason) == ("sam", "disks came early")
    assert sam.post(address, {"reason": "again"}).status_code == 409


def test_a_downtime_is_changed(sam: Client, sites: list[Site]) -> None:
    downtime = entered(2, 4)
    address = reverse("web:change-downtime", args=[downtime.pk])

    answer = sam.post(address, form(5, 6, lead_min="", reason="later"), follow=True)

    downtime.refresh_from_db()
    assert answer.redirect_chain == [(reverse("web:downtime", args=[downtime.pk]), 302)]
    assert (downtime.reason, downtime.lead_time_s) == ("later", 0)
    facts = AuditEntry.objects.get(action="change downtime").facts
    assert facts["reason"] == ["new disks", "later"]


@pytest.mark.parametrize("what", ["change", "cancel"])
def test_what_was_changed_meanwhile_is_shown_and_not_overwritten(
    sam: Client, sites: list[Site], what: str
) -> None:
    downtime = entered(2, 4)
    seen = sam.get(reverse("web:downtime", args=[downtime.pk])).context["seen"]
    sam.post(reverse("web:change-downtime", args=[downtime.pk]), form(7, 8, reason="much later"))

    answer = sam.post(
        reverse(f"web:{what}-downtime", args=[downtime.pk]), form(reason="mine", seen=seen)
    )

    downtime.refresh_from_db()
    assert answer.status_code == 409
    assert "much later" in text(answer)
    assert (downtime.reason, downtime.cancelled_at) == ("much later", None)


def test_a_user_reads_and_changes_nothing(alice: Client, sites: list[Site]) -> None:
    downtime = entered(2, 4)
    page = reverse("web:downtime", args=[downtime.pk])

    for address in (LIST, CALENDAR, page):
        assert "Enter downtime" not in text(alice.get(address))
    assert "Cancel this downtime" not in text(alice.get(page))
    assert alice.get(NEW).status_code == 403
    assert alice.post(NEW, form()).status_code == 403
    for what in ("change", "cancel"):
        address = reverse(f"web:{what}-downtime", args=[downtime.pk])
        assert alice.post(address, form()).status_code == 403
        assert alice.get(address).status_code == 302
    assert Downtime.objects.get().cancelled_at is None


def test_a_site_administrator_enters_downtimes_at_own_sites_only(
    people: SimpleNamespace, browser_of: BrowserOf, sites: list[Site]
) -> None:
    rita = User.objects.create_user("rita", role="site_admin")
    sites[0].administrators.add(rita)
    browser = browser_of(rita)

    page = text(browser.get(NEW))
    refused = browser.post(NEW, form(site=["UW", "Florida"]))
    allowed = browser.post(NEW, form())

    assert 'value="UW"' in page
    assert 'value="Florida"' not in page
    assert (refused.status_code, allowed.status_code) == (403, 302)
    assert [each.site.name for each in Downtime.objects.all()] == ["UW"]


def test_each_count_of_a_state_is_the_length_of_the_list_behind_its_link(
    alice: Client, sites: list[Site]
) -> None:
    entered(5, 6)
    entered(2, 3, lead_time_s=3 * 3600)
    entered(-1, 1)
    entered(-9, -8)
    early, never = entered(-2, 2), entered(7, 8)
    now = timezone.now()
    cancel_downtimes([early.pk, never.pk], actor=factories.SYSTEM, now=now)

    listing = alice.get(f"{LIST}?saved=none").context["listing"]

    counts = {facet.state: facet.count.value for facet in listing.facets}
    assert counts == {"planned": 1, "draining": 1, "running": 1, "over": 2, "cancelled": 1}
    for facet in listing.facets:
        assert len(alice.get(LIST + facet.query).context["listing"].lines) == (counts[facet.state])


def test_windows_that_overlap_are_drawn_in_different_lanes(
    people: SimpleNamespace, sites: list[Site]
) -> None:
    entered(1, 30)
    entered(2, 5, lead_time_s=3600)
    entered(40, 50)
    entered(1, 2, site="Florida")
    stretch = day_range_of("", "", now=timezone.now(), zone=_UTC)

    found = downtimes_between(people.alice, stretch.start, stretch.end + timedelta(days=7))
    florida, uw = rows_of(found, stretch)

    assert (florida.site, florida.height) == ("Florida", 12)
    assert [window.y for window in uw.windows] == [0, 12, 0]
    assert [window.overlaps for window in uw.windows] == [False, True, False]
    assert uw.windows[1].lead_width > 0


def test_the_calendar_shows_what_takes_away_some_of_its_days(
    alice: Client, sites: list[Site]
) -> None:
    shown, later = entered(1, 2, reason="shown"), entered(24 * 60, 24 * 61, reason="much later")
    cancelled = entered(1, 2, reason="cancelled")
    cancel_downtimes([cancelled.pk], actor=factories.SYSTEM, now=timezone.now())

    page = text(alice.get(CALENDAR))
    after = text(alice.get(CALENDAR, {"from": f"{later.start:%Y-%m-%d}", "days": "7"}))

    assert f'id="window-{shown.pk}"' in page
    assert f'id="window-{later.pk}"' not in page
    assert f'id="window-{cancelled.pk}"' not in page
    assert f'id="window-{later.pk}"' in after


@pytest.mark.parametrize(
    ("first", "days"),
    [
        ("", "x"), ("x", "7"), ("2026-02-30", "0"), ("-5", "7"), ("0001-01-01", "10000000"),
        ("9999-12-31", "10000000"),
    ],
)  # fmt: skip
def test_any_address_of_the_calendar_is_drawn(
    alice: Client, sites: list[Site], first: str, days: str
) -> None:
    assert alice.get(CALENDAR, {"from": first, "days": days}).status_code == 200


def test_a_day_on_which_clocks_change_is_drawn_whole(people: SimpleNamespace) -> None:
    stretch = day_range_of("2026-10-25", "7", now=timezone.now(), zone=_BERLIN)

    assert stretch.end - stretch.start == timedelta(days=7, hours=1)
    assert stretch.place(stretch.start + (stretch.end - stretch.start) / 2) == 50


def test_the_state_of_a_downtime_follows_the_clock(
    people: SimpleNamespace, sites: list[Site]
) -> None:
    now = timezone.now()
    add_downtimes(
        ["UW", "Florida"],
        start=now - HOUR,
        end=now + HOUR,
        reason="x",
        actor=factories.SYSTEM,
        now=now,
    )

    assert {each.state for each in listed_downtimes(people.vera)} == {"running"}


def test_an_empty_list_says_what_to_do_next(alice: Client, sam: Client) -> None:
    assert f'href="{NEW}"' not in text(alice.get(LIST))
    factories.site("UW")
    assert f'href="{NEW}"' in text(sam.get(LIST))
    assert 'id="cal-UW"' not in text(sam.get(CALENDAR))
