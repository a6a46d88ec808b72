"""Pages that other packages render, in the browser under our content policy."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.models import User


def test_the_page_of_the_schema_shows_the_endpoints(
    page: Page, live_server: LiveServer, login: Callable[[User], None], complaints: Complaints
) -> None:
    login(factories.person("ada"))
    page.goto(f"{live_server.url}/api/v1/docs/")

    expect(page.get_by_role("heading", name="Pilotage API")).to_be_visible()
    page.get_by_role("link", name="dags", exact=True).click()
    expect(page.get_by_text("Submit a DAG")).to_be_visible()
