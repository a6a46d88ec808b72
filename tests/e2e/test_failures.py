"""Failures in the browser: dashboard, failing DAG, cause, rerun."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from tests.e2e.production import Production
from wms.core.models import User
from wms.failures import grouping
from wms.failures.models import FailureGroup

Login = Callable[[User], None]


@pytest.fixture
def grouped(made: Production) -> Production:
    """A production whose failures are in groups."""
    grouping.run_cycle(timezone.now())
    return made


def test_a_shifter_finds_the_failing_dag_reads_why_and_comes_to_its_cause(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, name="higgs.dag", node_count=3)
    factories.run_job(factories.pilot(), exit_code=3)
    factories.turn()
    grouping.run_cycle(timezone.now())
    dag.refresh_from_db()
    assert (dag.state, dag.failed_count) == ("running", 1)
    login(people.sam)

    page.goto(live_server.url + reverse("web:dashboard"))
    line = page.locator(".needs li", has_text="higgs")
    expect(line).to_contain_text("failing")
    expect(line.locator(".why")).to_have_text("1 node has failed for good; the others go on.")
    page.get_by_role("link", name="the payload ended with exit code 3").click()

    expect(page.locator("#group-text")).to_have_text("the payload ended with exit code 3")
    page.get_by_role("link", name=f"{dag.pk}", exact=True).click()
    expect(page).to_have_url(live_server.url + reverse("web:dag", args=[dag.pk]))


def test_failed_nodes_are_one_click_from_the_dashboard(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    factories.running_dag(people.alice, name="higgs.dag", node_count=3)
    factories.run_job(factories.pilot(), exit_code=3)
    factories.turn()
    login(people.sam)

    page.goto(live_server.url + reverse("web:dashboard"))
    page.get_by_role("link", name=re.compile("^Failed nodes")).click()

    expect(page.locator("#nodes-box")).to_contain_text("exit code 3")


def test_a_cause_is_muted_by_keyboard_alone_and_leaves_the_dashboard(
    page: Page, live_server: LiveServer, login: Login, grouped: Production, complaints: Complaints
) -> None:
    group = FailureGroup.objects.filter(kind="job").order_by("-total")[0]
    login(grouped.people.sam)
    page.goto(live_server.url + reverse("web:dashboard"))
    page.locator(f"#cause-{group.pk}").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#group-text")).to_have_text(group.text)

    page.locator("#steer-mute summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("known, the image is being rebuilt")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert").or_(page.get_by_role("status"))).to_contain_text("is muted")
    page.goto(live_server.url + reverse("web:dashboard"))
    expect(page.locator(f"#cause-{group.pk}")).to_have_count(0)
