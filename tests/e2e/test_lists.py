"""Lists in the browser: keyboard, filters and the way back, refreshes, time zone of the reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.personal.models import Preferences, SavedFilter
from tests import factories
from tests.e2e.conftest import Complaints, log_in
from tests.e2e.production import Production
from wms.core.models import User
from wms.dags.models import Dag


@pytest.fixture
def dags(
    page: Page, live_server: LiveServer, made: Production, login: Callable[[User], None]
) -> Page:
    """The list of DAGs as Olga sees it."""
    login(made.people.olga)
    page.goto(live_server.url + reverse("web:dags"))
    return page


def test_a_list_is_searched_and_walked_through_by_keys_unless_they_are_switched_off(
    dags: Page, made: Production, complaints: Complaints
) -> None:
    dialog = dags.get_by_role("dialog", name="Keys")
    dags.keyboard.press("?")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    dags.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    # A question mark that is typed stays where it is typed.
    search = dags.locator("#list-search")
    dags.keyboard.press("f")
    expect(search).to_be_focused()
    dags.keyboard.type("?")
    expect(search).to_have_value("?")
    expect(dialog).to_be_hidden()
    dags.keyboard.press("Backspace")
    dags.keyboard.type("e")
    dags.keyboard.press("Enter")
    dags.wait_for_url("**/dags/?name=e")
    links = dags.locator("#live tbody tr .named-line > a")
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        dags.keyboard.press(key)
        expect(links.nth(place)).to_be_focused()

    Preferences.objects.create(user=made.people.olga, has_shortcuts=False)
    dags.reload()
    for key in ("f", "?"):
        dags.keyboard.press(key)
    expect(dags.locator("#list-search")).not_to_be_focused()
    expect(dialog).to_be_hidden()
    dags.get_by_role("link", name="Keys", exact=True).click()
    expect(dialog).to_be_visible()


def test_a_filter_is_narrowed_left_come_back_to_saved_and_taken_away_by_its_chip(
    dags: Page, complaints: Complaints
) -> None:
    dags.locator("#facet-held").click()
    dags.wait_for_url("**/dags/?state=held")
    rows = dags.locator("#live tbody tr .named-line > a")
    expect(rows).to_have_count(Dag.objects.filter(state="held").count())
    names = rows.all_inner_texts()
    rows.first.click()
    expect(dags.get_by_role("heading", name="Progress")).to_be_visible()

    dags.go_back()
    expect(dags.locator(".chips .chip")).to_have_count(1)
    expect(dags.locator("#facet-held")).to_have_attribute("aria-current", "true")
    assert rows.all_inner_texts() == names

    dags.locator("#menu-saved > summary").click()
    dags.get_by_label("Save this filter and order as").fill("stuck")
    dags.get_by_role("button", name="Save", exact=True).click()
    expect(dags.get_by_text("The filter stuck is saved.")).to_be_visible()
    assert SavedFilter.objects.get().parameters == {"state": ["held"]}

    dags.get_by_role("link", name="Remove the filter State held").click()
    dags.wait_for_url("**/dags/?saved=none")


def test_times_are_those_of_the_browser_when_that_is_wanted(
    browser: Browser, live_server: LiveServer
) -> None:
    people = factories.people()
    dag = factories.dag(people.alice, node_count=1)
    context = browser.new_context(timezone_id="Asia/Tokyo")
    log_in(context, live_server, people.olga)
    there = context.new_page()
    there.goto(live_server.url + reverse("web:dag", args=[dag.pk]) + "?tab=events")
    moment = there.locator("time.at").first
    expect(moment).to_contain_text("UTC")

    there.get_by_role("button", name="here").click()

    expect(there.locator("html")).to_have_attribute("data-zone", "browser")
    expect(moment).to_contain_text("GMT+9")
    assert there.locator("#live-stamp").inner_text().endswith("GMT+9")
    context.close()
