"""Pages that other packages render, in the browser under our content policy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.models import User


@pytest.fixture
def at_ada(live_server: LiveServer, login: Callable[[User], None], page: Page) -> Page:
    """The administrator's browser."""
    login(factories.person("ada"))
    return page


def test_the_page_of_the_schema_shows_the_endpoints(
    at_ada: Page, live_server: LiveServer, complaints: Complaints
) -> None:
    at_ada.goto(f"{live_server.url}/api/v1/docs/")

    expect(at_ada.get_by_role("heading", name="Pilotage API")).to_be_visible()
    at_ada.get_by_role("link", name="dags", exact=True).click()
    expect(at_ada.get_by_text("Submit a DAG")).to_be_visible()


def test_the_administration_shows_a_fault_at_its_line(
    at_ada: Page, live_server: LiveServer, complaints: Complaints
) -> None:
    at_ada.goto(f"{live_server.url}/admin/sites/site/add/")
    at_ada.get_by_label("Name:", exact=True).fill("Florida")
    at_ada.get_by_label("Attributes:").fill("Good = 1\nBad = (")
    at_ada.get_by_role("button", name="Save", exact=True).click()

    expect(at_ada.get_by_text("line 2, column 7: Bad: not a ClassAd expression")).to_be_visible()
