"""Every page at both widths, light and dark: checked by axe and kept as a screenshot."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.e2e import history_data
from tests.e2e.conftest import NARROW, WIDE, Complaints
from tests.e2e.page_checks import fits_the_narrowest, look
from tests.e2e.production import Production
from tests.e2e.walk_pages import NO_PAGES, admin_pages, is_made_alike, pages_of
from tests.portal.routes import routes
from wms.core.models import User
from wms.failures.models import FailureRule
from wms.sites.models import Site

Login = Callable[[User], None]


def _view_of(address: str) -> str:
    try:
        return resolve(urlsplit(address).path).view_name
    except Resolver404:
        return ""


@pytest.mark.slow
def test_every_page_of_the_portal_is_in_the_walk(made: Production) -> None:
    walked = {
        _view_of(each) for each in (*pages_of(made).values(), *admin_pages(made).values())
    } | {"web:login"}
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
    """What the charts draw."""
    history_data.fill(timezone.now(), list(Site.objects.values_list("name", flat=True)))


@pytest.mark.slow
@pytest.mark.usefixtures("past_of_sites")
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_page_is_accessible_and_quiet(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Login,
    complaints: Complaints,
    viewport: dict[str, int],
) -> None:
    complaints.expected = {404}
    page.set_viewport_size(viewport)  # type: ignore[arg-type]
    width, is_wide = viewport["width"], viewport == WIDE
    faults = []

    def walk(pages: dict[str, str]) -> None:
        for name, address in pages.items():
            page.goto(live_server.url + address)
            faults.extend(look(page, f"{name}-{width}", with_axe=is_wide))
            if not is_wide:
                faults.extend(fits_the_narrowest(page, name))

    walk({"login": reverse("web:login")})
    login(made.people.olga)
    walk(pages_of(made))
    _try_a_rule(page, live_server)
    faults += look(page, f"error-rule-tried-{width}", with_axe=is_wide)

    assert not faults, "\n".join(faults[:20])


@pytest.mark.slow
def test_every_page_of_the_administration_is_accessible_and_quiet(
    page: Page, live_server: LiveServer, made: Production, login: Login, complaints: Complaints
) -> None:
    login(made.people.ada)
    faults = []
    for name, address in admin_pages(made).items():
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        page.goto(live_server.url + address)
        faults += look(page, f"{name}-{WIDE['width']}")
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        faults += look(page, f"{name}-{NARROW['width']}", with_axe=False)

    assert not faults, "\n".join(faults[:20])


def _try_a_rule(page: Page, live_server: LiveServer) -> None:
    rule = FailureRule.objects.all()[1]
    page.goto(live_server.url + reverse("web:error-rule", args=[rule.pk]))
    page.locator("#id_is_enabled").uncheck()
    page.get_by_role("button", name="Try on the latest failures").click()
    expect(page.locator("#preview")).to_be_visible()
