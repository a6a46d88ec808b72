"""Test pilots in the browser: sent from the page of a queue; the report grows as it comes."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import REFRESH
from wms.core.models import User
from wms.pilots.models import Pilot, PilotCheck
from wms.sites.models import Queue


def test_a_test_pilot_is_sent_and_its_report_grows_up_to_the_verdict(
    page: Page,
    live_server: LiveServer,
    login: Callable[[User], None],
    complaints: Complaints,
) -> None:
    people = factories.people()
    site = factories.site()
    Queue.objects.update(is_enabled=False)
    login(people.sam)
    page.goto(live_server.url + reverse("web:queue", args=[site.name, "short"]))

    # The page says that nothing is sent there, and the test goes even so.
    expect(page.locator("#queue-closed")).to_contain_text("switched off")
    page.get_by_text("Send a test pilot", exact=True).first.click()
    page.get_by_label("Reason", exact=True).fill("new nodes")
    page.get_by_role("button", name="Send a test pilot").click()
    expect(page.locator("#verdict")).to_contain_text("asked within seconds")

    # What the pilot tells appears without a reload.
    pilot = Pilot.objects.get()
    Pilot.objects.filter(pk=pilot.pk).update(
        state="running",
        batch="batch",
        native_id="4711",
        batch_state="running",
        token_sha256="x",
        registered_at=timezone.now(),
        heartbeat_at=timezone.now(),
        node={"hostname": "node1", "fence": "bwrap"},
    )
    page.evaluate(REFRESH)
    expect(page.locator("#verdict")).to_contain_text("has called in")
    for name, is_ok in (("disk", True), ("software", False)):
        PilotCheck.objects.create(
            pilot=pilot, name=name, is_ok=is_ok, seconds=1.5, key=name,
            reason="" if is_ok else "/sw cannot be used", metrics={"free_mb": 12},
        )  # fmt: skip
    page.evaluate(REFRESH)
    expect(page.locator("#verdict")).to_contain_text("Unfit: software")
