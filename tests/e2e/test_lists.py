"""Lists in the browser: keyboard, open menus, time zone of the reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.personal.models import Preferences, SavedFilter
from tests import factories
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import IS_SETTLED
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


def test_a_list_is_searched_and_walked_through_by_keyboard(
    dags: Page, complaints: Complaints
) -> None:
    dags.keyboard.press("f")
    expect(dags.locator("#list-search")).to_be_focused()

    dags.keyboard.type(".")
    dags.keyboard.press("Backspace")
    dags.keyboard.type("e")
    dags.keyboard.press("Enter")
    dags.wait_for_url("**/dags/?name=e")
    links = dags.locator("#live tbody tr .main > a")
    dags.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    dags.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    dags.keyboard.press("k")
    expect(links.nth(0)).to_be_focused()


def test_single_keys_do_nothing_for_who_switched_them_off(
    dags: Page, made: Production, complaints: Complaints
) -> None:
    Preferences.objects.create(user=made.people.olga, has_shortcuts=False)
    dags.reload()

    dags.keyboard.press("f")

    expect(dags.locator("#list-search")).not_to_be_focused()


def test_a_filter_is_narrowed_by_a_facet_saved_and_taken_away_by_its_chip(
    dags: Page, live_server: LiveServer, complaints: Complaints
) -> None:
    dags.locator("#facet-held").click()
    dags.wait_for_url("**/dags/?state=held")
    expect(dags.locator("#live tbody tr")).to_have_count(Dag.objects.filter(state="held").count())

    dags.locator("#menu-saved > summary").click()
    dags.get_by_label("Save this filter and order as").fill("stuck")
    dags.get_by_role("button", name="Save", exact=True).click()
    expect(dags.get_by_text("The filter stuck is saved.")).to_be_visible()
    assert SavedFilter.objects.get().parameters == {"state": ["held"]}

    dags.get_by_role("link", name="Remove the filter State held").click()
    dags.wait_for_url("**/dags/?saved=none")


def test_an_open_menu_and_a_folded_summary_stay_so_while_rows_are_refreshed(
    dags: Page, made: Production, complaints: Complaints
) -> None:
    dags.clock.install()
    dags.reload()
    dags.locator("#groups > summary").click()
    dags.locator("#menu-columns > summary").click()
    factories.dag(made.people.bob, name="fresh.dag")

    dags.clock.run_for(10_500)

    expect(dags.get_by_role("link", name="fresh", exact=True)).to_be_visible()
    expect(dags.locator("#menu-columns")).to_have_attribute("open", "")
    expect(dags.locator("#groups")).not_to_have_attribute("open", "")


def test_times_are_those_of_the_browser_when_that_is_wanted(
    browser: Browser,
    live_server: LiveServer,
    made: Production,
    login: Callable[[User], None],
    page: Page,
    complaints: Complaints,
) -> None:
    login(made.people.olga)
    cookies = page.context.cookies()
    context = browser.new_context(timezone_id="Asia/Tokyo")
    context.add_cookies(cookies)
    there = context.new_page()
    there.goto(live_server.url + reverse("web:dag", args=[made.held.pk]) + "?tab=events")
    moment = there.locator("time.at").first
    expect(moment).to_contain_text("UTC")

    there.get_by_role("button", name="here").click()

    expect(there.locator("html")).to_have_attribute("data-zone", "browser")
    expect(moment).to_contain_text("GMT+9")
    assert there.locator("#live-stamp").inner_text().endswith("GMT+9")
    context.close()


def test_a_line_of_a_list_is_at_most_two_lines_of_text_high(
    page: Page, live_server: LiveServer, made: Production, login: Callable[[User], None],
    complaints: Complaints,
) -> None:  # fmt: skip
    login(made.people.olga)
    page.set_viewport_size({"width": 1440, "height": 900})
    for name in ("web:dags", "web:jobs", "web:task-queues", "web:audit"):
        page.goto(live_server.url + reverse(name))
        page.wait_for_function(IS_SETTLED)
        heights = page.locator("#live table.data tbody tr").evaluate_all(
            "(rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height))"
        )

        assert heights
        assert max(heights) <= 40, (name, heights)
