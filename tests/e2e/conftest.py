"""Fixtures of the browser tests: browser, login, example production, pictures, and `complaints`.

A test that takes `complaints` fails on errors in the console and on failed requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from playwright.sync_api import BrowserContext, Page, Playwright, Request, Response
from pytest_django.live_server_helper import LiveServer

from tests.e2e import production
from tests.e2e.live_pages import live_pages
from tests.e2e.snapshot import ProductionSnapshot
from wms.core.models import User

WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def playwright(playwright: Playwright) -> Iterator[Playwright]:
    """The browser's driver; no connection is left behind when it stops.

    It keeps an event loop running in this thread, and inside of one Django has other connections
    than outside: the test database could not be dropped at the end.
    """
    yield playwright
    connections.close_all()


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The browser asks nobody but the server under test for anything."""
    quiet = ["--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync"]
    return {**browser_type_launch_args, "args": [*browser_type_launch_args["args"], *quiet]}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {
        **browser_context_args,
        "viewport": WIDE,
        "timezone_id": "Europe/Zurich",
        "reduced_motion": "reduce",
    }


@pytest.fixture(scope="session")
def live_server() -> Iterator[LiveServer]:
    """The portal, on a port of its own."""
    server = live_pages("localhost")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def production_snapshot() -> ProductionSnapshot:
    """The production of all tests of this process."""
    return ProductionSnapshot()


@pytest.fixture
def made(live_server: LiveServer, production_snapshot: ProductionSnapshot) -> production.Production:
    """A production in progress."""
    return production_snapshot.production()


@pytest.fixture
def pictures(pytestconfig: pytest.Config) -> Path | None:
    """Where pictures of pages are to be kept, if anywhere: they take a third of a walk's time."""
    if not pytestconfig.getoption("pictures"):
        return None
    folder = Path(settings.BASE_DIR, "var", "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def log_in(context: BrowserContext, live_server: LiveServer, user: User) -> None:
    """Log a user in without the form."""
    client = Client()
    client.force_login(user)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": live_server.url}]
    )


@pytest.fixture
def login(context: BrowserContext, live_server: LiveServer) -> Callable[[User], None]:
    """Log a user in at the browser of the test, without the form."""
    return partial(log_in, context, live_server)


@dataclass
class Complaints:
    """What went wrong in a page; `expected` are statuses that the test provokes."""

    expected: set[int] = field(default_factory=set)
    found: list[str] = field(default_factory=list)

    def hear(self, page: Page) -> None:
        """Listen to everything that the page does."""
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.found.append(f"script: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def _console(self, kind: str, text: str) -> None:
        is_expected = any(f"status of {status}" in text for status in self.expected)
        if kind in ("error", "warning") and not is_expected:
            self.found.append(f"console {kind}: {text}")

    def _failed(self, request: Request) -> None:
        # A request that a change of the page cut off has not failed.
        if request.failure != "net::ERR_ABORTED":
            self.found.append(f"request: {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.found.append(f"answer: {response.url}: {response.status}")


@pytest.fixture
def complaints(page: Page) -> Iterator[Complaints]:
    """Every test that takes this fails on errors in the console and on failed requests."""
    heard = Complaints()
    heard.hear(page)
    yield heard
    assert heard.found == []


@pytest.fixture(autouse=True)
def _wrong_passwords_of_other_tests_do_not_count(own_cache: None) -> None:
    """Several tests run at once, and all of them come from one address."""
