"""Notes in the browser: acknowledge and assign a DAG, see it in the overview, hand over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.models import User
from wms.dags.lifecycle import apply_to_dags
from wms.dags.models import Dag
from wms.remarks.models import Remark

Login = Callable[[User], None]


def test_a_shifter_acknowledges_a_dag_assigns_it_and_hands_the_shift_over(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    quiet, loud = (factories.dag(people.alice, name=f"{name}.dag") for name in ("quiet", "loud"))
    apply_to_dags("fail", [quiet.pk, loud.pk], actor=factories.SYSTEM, reason="the disk is full")
    earlier = timezone.now() - timedelta(minutes=1)
    Dag.objects.filter(pk__in=[quiet.pk, loud.pk]).update(state_since=earlier)
    login(people.sam)
    complaints.expected = {400}

    page.goto(live_server.url + reverse("web:dag", args=[quiet.pk]))
    page.get_by_text("Write a note, acknowledge, assign").click()
    page.get_by_label("Text").fill("asked at https://tickets.example.org/12.")
    page.get_by_label("for minutes").fill("soon")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#fault-remark")).to_be_visible()
    expect(page.get_by_label("Text")).to_have_value("asked at https://tickets.example.org/12.")
    assert not Remark.objects.exists()

    page.get_by_label("for minutes").fill("90")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#care")).to_contain_text("Acknowledged by sam")
    link = page.locator(".remark-text a")
    expect(link).to_have_attribute("href", "https://tickets.example.org/12")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    page.get_by_text("Write a note, acknowledge, assign").click()
    page.get_by_label("to", exact=True).fill("alice")
    page.get_by_role("button", name="Assign", exact=True).click()
    expect(page.locator("#care")).to_contain_text("Assigned to alice")

    page.goto(live_server.url + reverse("web:dashboard"))
    items = page.locator(".needs li")
    expect(items.nth(0)).to_contain_text("loud")
    expect(items.nth(1)).to_have_class("is-acknowledged")
    expect(items.nth(1)).to_contain_text("acknowledged by sam, assigned to alice")

    page.get_by_role("link", name="Shift log").click()
    page.get_by_text("Write an entry").click()
    page.get_by_role("textbox", name="Text", exact=True).fill("A quiet night.")
    page.get_by_role("button", name="Write entry").click()
    expect(page.locator("table.remarks tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Summary of a shift").click()
    expect(page.locator(".remark")).to_have_count(3)
    expect(page.locator("#shift-time")).to_contain_text("1 note, 1 acknowledged, 1 assigned")
