"""Shifter in the browser: jobs that wait for pilots."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.e2e.conftest import Complaints
from tests.e2e.production import Production
from wms.core.models import User
from wms.taskqueues.models import WaitingJob
from wms.taskqueues.operations import withdraw


@pytest.mark.slow
def test_a_task_queue_is_found_and_followed_until_its_last_job_is_taken(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Callable[[User], None],
    complaints: Complaints,
) -> None:
    login(made.people.sam)
    page.clock.install()
    page.goto(live_server.url + reverse("web:task-queues"))

    by_priority = page.get_by_role("columnheader", name="Priority")
    by_priority.get_by_role("link").click()
    page.locator("#menu-filters > summary").click()
    page.get_by_label("Needs the tag").fill("ssd")
    page.get_by_role("button", name="Filter").click()
    expect(by_priority).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name=f"TaskQueue {made.task_queue.pk}").click()

    expect(page.get_by_role("heading", name="Never", exact=True)).to_be_visible()
    expect(page.get_by_text("There is no site T2-Nowhere today.")).to_be_visible()
    withdraw(WaitingJob.objects.filter(task_queue=made.task_queue).values_list("job_id", flat=True))
    page.clock.run_for(5_500)
    expect(page.get_by_text("it may be empty by now")).to_be_visible()
