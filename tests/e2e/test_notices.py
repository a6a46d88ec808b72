"""Notices in the browser: subscribe on a DAG's page, read, unsubscribe."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import NARROW, Complaints
from wms.core.models import User
from wms.dags.lifecycle import apply_to_dags
from wms.notices import fanout
from wms.notices.models import Notice, Subscription

Login = Callable[[User], None]


def test_who_asked_on_a_dags_page_sees_in_the_rail_that_it_failed_and_how_many_are_unread(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.dag(people.alice, name="higgs.dag")
    login(people.vera)

    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
    expect(page.locator("#unread")).to_have_count(0)
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notifying me")).to_be_visible()

    apply_to_dags("fail", [dag.pk], actor=factories.SYSTEM, reason="the disk is full")
    fanout.run_cycle(timezone.now())
    # What a script does every half a minute, while the page stays open.
    page.evaluate("htmx.trigger('#bell', 'pilotage:bell')")
    expect(page.locator("#unread")).to_have_text("1")

    page.get_by_role("link", name="Notices: 1 unread").click()
    line = page.locator(".notices li")
    expect(line).to_contain_text(f"DAG {dag.pk} (higgs) has failed")
    expect(line).to_contain_text("the disk is full")
    line.get_by_role("button", name="Mark as read").click()
    expect(page.locator("#unread")).to_have_count(0)
    line.get_by_role("link").click()
    expect(page).to_have_url(live_server.url + reverse("web:dag", args=[dag.pk]))
    page.get_by_role("button", name="Notifying me").click()
    expect(page.get_by_role("button", name="Notify me")).to_be_visible()
    assert not Subscription.objects.exists()

    Notice.objects.bulk_create(
        Notice(
            user=people.vera, kind="banned", subject_kind="site", subject_id="UW",
            key=str(number), title="Site UW is banned", happened_at=timezone.now(),
        )
        for number in range(120)
    )  # fmt: skip
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.evaluate("htmx.trigger('#bell', 'pilotage:bell')")
    expect(page.locator("#unread")).to_have_text("99+")
    expect(page.locator("#unread")).to_be_visible()
