"""Pages in a browser that runs no scripts: forms and links do the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from wms.bulk.models import BulkOperation
from wms.dags.services.dags import hold_dags


@pytest.fixture
def people(live_server: LiveServer) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def plain(
    browser: Browser,
    browser_context_args: dict[str, Any],
    people: SimpleNamespace,
    live_server: LiveServer,
) -> Iterator[Page]:
    """A page without scripts, on which Sam has logged in."""
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    page = context.new_page()
    page.goto(live_server.url + reverse("web:submit"))
    page.get_by_label("User name").fill("sam")
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(live_server.url + reverse("web:submit"))
    yield page
    context.close()


def test_a_faulty_dag_is_told_a_held_one_released_and_a_downtime_entered(
    plain: Page, live_server: LiveServer, people: SimpleNamespace, tmp_path: Path
) -> None:
    faulty = tmp_path / "lonely.dag"
    faulty.write_text("JOB A missing.sub\n")
    plain.get_by_label("DAG file").set_input_files(faulty)
    plain.get_by_role("button", name="Check and submit").click()
    expect(plain.locator(".findings")).to_contain_text("missing.sub")
    expect(plain.locator(".findings")).to_contain_text("lonely.dag:1")

    factories.site()
    held, other = (factories.dag(people.alice, node_count=1) for _ in range(2))
    hold_dags([held.pk, other.pk], actor=factories.SYSTEM, reason="look")
    plain.goto(live_server.url + reverse("web:dags"))
    plain.locator(f"#pick-{held.pk}").check()
    plain.locator("#bulk-release").click()
    plain.locator("#confirm").click()
    plain.wait_for_selector("#how-far")
    operation = BulkOperation.objects.get()
    assert (operation.state, operation.action) == ("confirmed", "release")
    assert operation.items.get().object_id == held.pk

    plain.goto(live_server.url + reverse("web:new-downtime"))
    plain.get_by_label("UW").check()
    plain.get_by_label("Reason").fill("new disks")
    plain.get_by_role("button", name="Enter this downtime").click()
    plain.goto(live_server.url + reverse("web:downtime-calendar"))
    expect(plain.locator("#cal-UW")).to_contain_text("new disks")


def test_lines_of_a_log_are_gone_to_and_searched(
    plain: Page, live_server: LiveServer, people: SimpleNamespace
) -> None:
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    claimed = factories.claim(worker)
    assert claimed is not None
    text = b"".join(b"step %d of many\n" % n for n in range(1, 501))
    claimed.start().send("stdout", "stdout", text)
    address = reverse("web:attempt-log", args=[claimed.job.pk, 1, "stdout"])
    plain.goto(f"{live_server.url}{address}?line=120")
    marked = plain.locator(".is-marked .text")
    expect(marked).to_have_text("step 120 of many")

    plain.get_by_placeholder("Words").fill("STEP 77 ")
    plain.get_by_role("button", name="Find").click()
    plain.locator(".log-found a").click()
    expect(marked).to_have_text("step 77 of many")
    plain.get_by_placeholder("Line").fill("400")
    plain.get_by_role("button", name="Go").click()
    expect(marked).to_have_text("step 400 of many")
