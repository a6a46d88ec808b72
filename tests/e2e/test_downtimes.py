"""Downtimes in the browser: time zones, keyboard, early end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.personal.services import save_preferences
from tests import factories
from tests.e2e.conftest import NARROW, Complaints
from wms.core.actors import Actor
from wms.core.models import User
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import add_downtime

Login = Callable[[User], None]
HOUR = timedelta(hours=1)
#: Of the browser of these tests.
HERE = ZoneInfo("Europe/Zurich")


def running_downtime(site: str = "UW", reason: str = "the cooling fails") -> Downtime:
    now = timezone.now()
    return add_downtime(
        site,
        start=now - HOUR,
        end=now + 24 * HOUR,
        reason=reason,
        actor=factories.SYSTEM,
        now=now,
    )


def test_the_dag_that_does_not_start_is_found_and_started_by_ending_a_downtime(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    factories.site()
    running_downtime()
    dag = factories.dag(people.alice, name="higgs", node_count=1)
    factories.turn()
    login(people.sam)

    # It is found among those that wait, and its page says why.
    page.goto(live_server.url + reverse("web:dags"))
    page.locator("#facet-idle").click()
    page.get_by_role("link", name="higgs", exact=True).click()
    why = page.locator("#live").get_by_text("downtime").first
    expect(why).to_contain_text("the cooling fails")

    # The site leads to its downtime, which is ended with a reason.
    page.get_by_role("link", name="Sites", exact=True).click()
    page.locator("#site-UW").click()
    expect(page.get_by_text("Takes no new DAG:")).to_be_visible()
    page.get_by_role("link", name="the cooling fails").click()
    page.get_by_label("Reason").last.fill("the cooling works again")
    page.get_by_role("button", name="End this downtime now").click()
    expect(page.get_by_text("The downtime is ended.")).to_be_visible()

    # With the next negotiation it runs, and the audit tells who saw to that.
    factories.turn()
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
    expect(page.locator("#live .state", has_text="running").first).to_be_visible()
    page.goto(live_server.url + reverse("web:audit") + "?object=site:UW")
    expect(page.locator("table.audit")).to_contain_text("the cooling works again")


def test_a_downtime_is_entered_in_the_zone_of_the_browser(
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


def test_the_calendar_is_read_by_keyboard(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    for name in ("UW", "Florida"):
        factories.site(name)
        running_downtime(name, f"works at {name}")
    login(people.alice)
    page.set_viewport_size(NARROW)
    page.goto(live_server.url + reverse("web:downtime-calendar"))

    page.locator("#cal-later").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id").startswith("window-"):
            break
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Downtime of Florida")).to_be_visible()
    page.go_back()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    expect(page.locator(".cal-scale .today")).to_have_count(1)


@pytest.fixture
def plain_page(browser: Browser, browser_context_args: dict[str, Any]) -> Iterator[Page]:
    """A page without scripts."""
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_a_downtime_is_entered_and_drawn_without_scripts(
    plain_page: Page, live_server: LiveServer
) -> None:
    factories.people()
    factories.site()
    plain_page.goto(live_server.url + reverse("web:new-downtime"))
    plain_page.get_by_label("User name").fill("sam")
    plain_page.get_by_label("Password").fill(factories.PASSWORD)
    plain_page.get_by_role("button", name="Log in").click()

    plain_page.get_by_label("UW").check()
    plain_page.get_by_label("Reason").fill("new disks")
    plain_page.get_by_role("button", name="Enter this downtime").click()
    plain_page.goto(live_server.url + reverse("web:downtime-calendar"))

    expect(plain_page.locator("#cal-UW")).to_contain_text("new disks")


def test_the_keys_are_shown_on_a_question_mark(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    login(people.alice)
    page.goto(live_server.url + reverse("web:dags"))
    dialog = page.get_by_role("dialog", name="Keys")

    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    # A question mark that is typed stays where it is typed.
    page.keyboard.press("f")
    page.keyboard.type("why?")
    expect(dialog).to_be_hidden()
    expect(page.locator("#list-search")).to_have_value("why?")


def test_without_shortcuts_the_keys_are_shown_by_their_link_alone(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    save_preferences({"has_shortcuts": False}, actor=Actor.person(people.alice))
    login(people.alice)
    page.goto(live_server.url + reverse("web:dags"))
    dialog = page.get_by_role("dialog", name="Keys")

    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Keys", exact=True).click()
    expect(dialog).to_be_visible()
