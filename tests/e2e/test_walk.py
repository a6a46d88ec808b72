"""Every page, wide and narrow, light and dark, checked by axe; `--pictures` keeps it as it looks.

`page_checks` says what is looked at once only among what looks alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.e2e import history_data
from tests.e2e.conftest import WIDE, Complaints
from tests.e2e.page_checks import bring_axe, look, look_narrow
from tests.e2e.production import Production
from tests.e2e.walk_pages import NO_PAGES, admin_pages, is_made_alike, pages_of
from tests.portal.routes import routes
from wms.core.models import User
from wms.failures.models import FailureRule
from wms.sites.models import Site

Login = Callable[[User], None]
#: Lists in which a line is two lines of text high at most, in pixels.
_LOW, _TWO_LINES = {"dags", "jobs", "task-queues", "audit"}, 40
_HEIGHTS = "(rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height))"
#: Numbers as they are after years, or after a return of a backup.
_LONG_NUMBERS = """(rows) => rows
    .flatMap((row) => [...row.querySelectorAll("small, small a")])
    .filter((each) => /^\\d+$/.test(each.textContent))
    .forEach((each) => { each.textContent = "1000000000"; })"""


def _view_of(address: str) -> str:
    try:
        return resolve(urlsplit(address).path).view_name
    except Resolver404:
        return ""


def _check_that_none_is_left_out(addresses: Iterable[str]) -> None:
    walked = {_view_of(each) for each in addresses} | {"web:login"}
    there = {
        route.name
        for route in routes()
        if route.name.startswith(("web:", "admin:")) and not is_made_alike(route.name)
    }
    assert there - walked - NO_PAGES == set(), "pages that nobody looks at"
    assert NO_PAGES - there == set(), "addresses that are gone"
    assert NO_PAGES & walked == set(), "pages that are said to be none"


@pytest.fixture
def past_of_sites(made: Production) -> None:
    """Data of the charts, of a day at most."""
    sites = list(Site.objects.values_list("name", flat=True))
    history_data.fill(timezone.now(), sites, back=timedelta(days=2))


@pytest.fixture
def look_at(page: Page, live_server: LiveServer, pictures: Path | None) -> Callable[..., list[str]]:
    """Looks at a page by its address, else at the one that is open, and returns what is wrong."""
    bring_axe(page)

    def look_at(name: str, address: str | None = None) -> list[str]:
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        if address is not None:
            page.goto(live_server.url + address)
        faults = look(page, name, pictures=pictures)
        if name in _LOW:
            faults += _high_lines(page, name)
        return faults + look_narrow(page, name, pictures=pictures)

    return look_at


@pytest.mark.slow
@pytest.mark.usefixtures("past_of_sites")
def test_every_page_is_accessible_and_quiet(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Login,
    complaints: Complaints,
    look_at: Callable[..., list[str]],
) -> None:
    complaints.expected = {404}
    pages = pages_of(made)
    _check_that_none_is_left_out([*pages.values(), *admin_pages(made).values()])
    faults = look_at("login", reverse("web:login"))

    login(made.people.olga)
    for name, address in pages.items():
        faults += look_at(name, address)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    _try_a_rule(page, live_server)
    faults += look_at("error-rule-tried")

    assert not faults, "\n".join(faults[:20])


@pytest.mark.slow
def test_every_page_of_the_administration_is_accessible_and_quiet(
    made: Production, login: Login, complaints: Complaints, look_at: Callable[..., list[str]]
) -> None:
    login(made.people.ada)
    faults = []
    for name, address in admin_pages(made).items():
        faults += look_at(name, address)

    assert not faults, "\n".join(faults[:20])


def _high_lines(page: Page, name: str) -> list[str]:
    rows = page.locator("#live table.data tbody tr")
    rows.evaluate_all(_LONG_NUMBERS)
    heights = rows.evaluate_all(_HEIGHTS)
    assert heights
    return [f"{name}: a line is {max(heights)} px high"] if max(heights) > _TWO_LINES else []


def _try_a_rule(page: Page, live_server: LiveServer) -> None:
    rule = FailureRule.objects.all()[1]
    page.goto(live_server.url + reverse("web:error-rule", args=[rule.pk]))
    page.locator("#id_is_enabled").uncheck()
    page.get_by_role("button", name="Try on the latest failures").click()
    expect(page.locator("#preview")).to_be_visible()
