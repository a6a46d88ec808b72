"""Notices in the browser: subscribe on a DAG's page, read, unsubscribe."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.models import User
from wms.dags.lifecycle import apply_to_dags
from wms.notices import fanout
from wms.notices.models import Notice, Subscription

Login = Callable[[User], None]


def test_who_asked_on_a_dags_page_sees_in_the_rail_that_it_failed(
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


def test_the_account_is_managed_by_keyboard(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    login(factories.person("alice"))

    page.goto(live_server.url + reverse("web:dashboard"))
    page.get_by_role("link", name=re.compile("^alice")).press("Enter")
    page.get_by_role("link", name="Notifications").press("Enter")
    page.get_by_role("button", name="Switch on: a DAG of mine is failing").press("Enter")
    expect(page.locator("#off-my-dags-failed")).to_be_visible()
    page.get_by_label("New webhook").fill("https://hooks.example.org/in")
    page.get_by_label("New webhook").press("Enter")
    expect(page.locator("#secret-text")).to_contain_text("plw_")
    page.get_by_role("link", name="API tokens").press("Enter")
    page.get_by_label("What it is for").fill("nightly")
    page.get_by_label("What it is for").press("Enter")
    expect(page.locator("#token-text")).to_contain_text("plt_")
    assert Subscription.objects.filter(rule="my-dags-failed").count() == 1


def test_the_number_of_unread_notices_is_seen_on_a_telephone(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    alice = factories.person("alice")
    for number in range(120):
        Notice.objects.create(
            user=alice, kind="banned", subject_kind="site", subject_id="UW", key=str(number),
            title="Site UW is banned", happened_at=timezone.now(),
        )  # fmt: skip
    login(alice)
    page.set_viewport_size({"width": 390, "height": 844})

    page.goto(live_server.url + reverse("web:dashboard"))

    expect(page.locator("#unread")).to_be_visible()
    expect(page.locator("#unread")).to_have_text("99+")
