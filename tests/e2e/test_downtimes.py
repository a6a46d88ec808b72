"""Downtimes in the browser: entered in its time zone, read in the calendar by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.personal.services import save_preferences
from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.actors import Actor
from wms.core.models import User
from wms.sites.downtimes.models import Downtime

Login = Callable[[User], None]
HOUR = timedelta(hours=1)
#: Of the browser of these tests.
HERE = ZoneInfo("Europe/Zurich")


def test_a_downtime_is_entered_in_the_zone_of_the_browser_and_read_in_the_calendar_by_keyboard(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    factories.site()
    save_preferences({"time_zone": "browser"}, actor=Actor.person(people.sam))
    login(people.sam)
    page.goto(live_server.url + reverse("web:site", args=["UW"]))
    page.get_by_role("link", name="Enter downtime").click()

    expect(page.locator("[data-zone-name]").first).to_have_text("Europe/Zurich")
    expect(page.get_by_label("UW")).to_be_checked()
    start = timezone.now().astimezone(HERE).replace(second=0, microsecond=0) + 3 * HOUR
    page.get_by_label(re.compile("^Start")).fill(f"{start:%Y-%m-%dT%H:%M}")
    page.get_by_label(re.compile("^End")).fill(f"{start + HOUR:%Y-%m-%dT%H:%M}")
    page.get_by_label("Lead time in minutes").fill("30")
    page.get_by_label("Reason").fill("new disks")
    page.get_by_role("button", name="Enter this downtime").click()

    expect(page.get_by_text("The downtime of UW is entered.")).to_be_visible()
    downtime = Downtime.objects.get()
    assert (downtime.start, downtime.end - downtime.start) == (start, HOUR)
    assert downtime.lead_time_s == 1800

    page.goto(live_server.url + reverse("web:downtime-calendar"))
    expect(page.locator(".cal-scale .today")).to_have_count(1)
    page.locator("#cal-later").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id").startswith("window-"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Downtime of UW")).to_be_visible()
