"""Bulk operations in the browser: refreshes, exact selection, keyboard, narrow screens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import NARROW, Complaints
from tests.e2e.page_checks import REFRESH
from tests.e2e.production import Production
from tests.wms.bulk.conftest import finish
from wms.bulk.models import BulkItem, BulkOperation
from wms.core.models import User
from wms.dags.models import Dag
from wms.jobs.models import Job

Login = Callable[[User], None]


@pytest.fixture
def dags(page: Page, live_server: LiveServer, made: Production, login: Login) -> Page:
    """The list of DAGs as Sam sees it."""
    login(made.people.sam)
    page.goto(live_server.url + reverse("web:dags"))
    return page


def _begun(page: Page) -> BulkOperation:
    page.wait_for_url("**/bulk/*/")
    return BulkOperation.objects.latest("pk")


def test_all_dags_of_a_user_are_held_by_filter_after_the_list_was_refreshed(
    dags: Page, made: Production, complaints: Complaints
) -> None:
    """The list is narrowed and replaced in place: what is selected are the rows that it shows."""
    others = dict(Dag.objects.exclude(owner=made.people.alice).values_list("pk", "state"))
    dags.get_by_role("link", name="alice", exact=False).first.click()
    dags.wait_for_url("**/dags/?owner=alice")
    chosen = dags.locator(f"#pick-{made.running.pk}")
    chosen.check()
    dags.locator("#groups > summary").click()
    dags.locator("#menu-columns > summary").click()
    fresh = factories.dag(made.people.alice, name="fresh.dag")
    dags.evaluate(REFRESH)
    expect(dags.get_by_role("link", name="fresh", exact=True)).to_be_visible()
    # What was ticked, open and folded stays so.
    expect(chosen).to_be_checked()
    expect(dags.locator("#bulk-count")).to_have_text("1 chosen")
    expect(dags.locator("#menu-columns")).to_have_attribute("open", "")
    expect(dags.locator("#groups")).not_to_have_attribute("open", "")
    mine = set(Dag.objects.filter(owner=made.people.alice).values_list("pk", flat=True))

    dags.locator("#menu-columns > summary").click()
    dags.locator("#pick-all").check()
    dags.locator("#bulk-hold").click()
    operation = _begun(dags)
    expect(dags.get_by_role("heading", level=1)).to_have_text(f"Hold: {len(mine)} DAGs")
    dags.get_by_label("Reason").fill("the disk is full")
    dags.locator("#confirm").click()
    dags.wait_for_selector("#how-far")
    finish(operation)
    dags.reload()

    expect(dags.locator("#how-far")).to_have_text(f"{len(mine)} of {len(mine)} processed")
    items = BulkItem.objects.filter(operation=operation)
    assert set(items.values_list("object_id", flat=True)) == mine
    assert dict(Dag.objects.filter(pk__in=others).values_list("pk", "state")) == others
    dags.locator("#back-to-list").click()
    dags.wait_for_url("**/dags/?owner=alice")
    expect(dags.locator(f"tr:has(#dag-{fresh.pk}) .state")).to_have_text("held")


def test_rows_are_ticked_on_a_narrow_screen_and_by_keyboard_alone(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    first, second = (factories.running_dag(user) for user in (people.alice, people.bob))
    other = factories.running_dag(people.alice)
    job = factories.job(people.bob, name="lonely")
    Job.objects.filter(pk=job.pk).update(state="held", state_reason="wrong calibration")
    login(people.sam)
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(live_server.url + reverse("web:dags"))

    for dag in (first, second):
        page.locator(f"#pick-{dag.pk}").check()
    page.get_by_role("button", name="Rematch").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rematch: 2 DAGs")
    page.get_by_label("Reason").fill("the site burns")
    page.get_by_label("Let jobs that run finish where they are").check()
    page.get_by_role("button", name="Rematch 2 DAGs").click()
    page.wait_for_selector("#how-far")
    finish(BulkOperation.objects.get())
    states = dict(Dag.objects.values_list("pk", "state"))
    assert states == {first.pk: "idle", second.pk: "idle", other.pk: "running"}

    page.goto(f"{live_server.url}{reverse('web:jobs')}?state=held&name=lonely")
    page.keyboard.press("j")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(f"#pick-{job.pk}")).to_be_focused()
    page.keyboard.press("Space")
    page.locator("#bulk-release").focus()
    page.keyboard.press("Enter")
    operation = _begun(page)
    page.locator("#confirm").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#how-far")
    finish(operation)
    assert operation.items.get().outcome == "done"
