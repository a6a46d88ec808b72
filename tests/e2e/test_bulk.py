"""Bulk operations in the browser: keyboard, refreshes, exact selection."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from tests.e2e.production import Production
from tests.wms.bulk.conftest import finish
from wms.bulk.models import BulkItem, BulkOperation
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags
from wms.jobs.models import Job


@pytest.fixture
def dags(
    page: Page, live_server: LiveServer, made: Production, login: Callable[[User], None]
) -> Page:
    """The list of DAGs as Sam sees it."""
    login(made.people.sam)
    page.goto(live_server.url + reverse("web:dags"))
    return page


def _begun(page: Page) -> BulkOperation:
    page.wait_for_url("**/bulk/*/")
    return BulkOperation.objects.latest("pk")


def test_the_head_of_a_list_stands_where_it_is_before_its_script_has_come(
    page: Page, live_server: LiveServer, made: Production, login: Callable[[User], None]
) -> None:
    login(made.people.sam)
    head = page.locator("thead a.sort").first
    page.route("**/js/bulk*.js", lambda route: route.abort())
    page.goto(live_server.url + reverse("web:jobs"))
    before = head.bounding_box()

    page.unroute("**/js/bulk*.js")
    page.reload()

    expect(page.locator("#pick-page")).to_be_visible()
    assert head.bounding_box() == before


def test_all_dags_of_a_user_are_held_by_filter_after_the_list_was_refreshed(
    dags: Page, made: Production, complaints: Complaints
) -> None:
    """The list is narrowed and replaced in place: what is selected are the rows that it shows."""
    others = dict(Dag.objects.exclude(owner=made.people.alice).values_list("pk", "state"))
    dags.get_by_role("link", name="alice", exact=False).first.click()
    dags.wait_for_url("**/dags/?owner=alice")
    dags.clock.install()
    dags.reload()
    fresh = factories.dag(made.people.alice, name="fresh.dag")
    dags.clock.run_for(10_500)
    expect(dags.get_by_role("link", name="fresh", exact=True)).to_be_visible()
    mine = set(Dag.objects.filter(owner=made.people.alice).values_list("pk", flat=True))

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
    fresh.refresh_from_db()
    assert fresh.state == "held"
    dags.locator("#back-to-list").click()
    dags.wait_for_url("**/dags/?owner=alice")
    expect(dags.locator(f"tr:has(#dag-{fresh.pk}) .state")).to_have_text("held")


def test_ticked_rows_stay_ticked_while_the_list_is_refreshed(
    dags: Page, made: Production, complaints: Complaints
) -> None:
    dags.clock.install()
    dags.reload()
    chosen = dags.locator(f"#pick-{made.running.pk}")
    chosen.check()
    expect(dags.locator("#bulk-count")).to_have_text("1 chosen")
    factories.dag(made.people.bob, name="fresh.dag")

    dags.clock.run_for(10_500)

    expect(dags.get_by_role("link", name="fresh", exact=True)).to_be_visible()
    expect(chosen).to_be_checked()
    expect(dags.locator("#bulk-count")).to_have_text("1 chosen")
    dags.locator("#bulk-hold").click()
    assert set(_begun(dags).items.values_list("object_id", flat=True)) == {made.running.pk}


def test_what_changes_between_preview_and_confirmation_is_told(
    dags: Page, live_server: LiveServer, made: Production, complaints: Complaints
) -> None:
    complaints.expected = {409}
    dags.goto(f"{live_server.url}{reverse('web:dags')}?state=idle,running")
    count = Dag.objects.filter(state__in=["idle", "running"]).count()
    dags.locator("#pick-all").check()
    dags.locator("#bulk-hold").click()
    operation = _begun(dags)
    remove_dags([made.idle.pk], actor=Actor.person(made.people.sam), reason="no use")
    late = factories.dag(made.people.bob, name="late.dag")

    dags.get_by_label("Reason").fill("the disk is full")
    dags.locator("#confirm").click()
    expect(dags.get_by_role("alert")).to_contain_text(f"You were shown {count}; {count - 1} are")
    expect(dags.get_by_label("Reason")).to_have_value("the disk is full")
    dags.locator("#confirm").click()
    dags.wait_for_selector("#how-far")
    finish(operation)

    made.idle.refresh_from_db()
    late.refresh_from_db()
    assert (made.idle.state, late.state) == ("removed", "idle")
    assert operation.items.get(object_id=made.idle.pk).outcome == "skipped"


def test_held_jobs_are_found_and_released_by_keyboard_alone(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Callable[[User], None],
    complaints: Complaints,
) -> None:
    login(made.people.sam)
    dag = factories.job(made.people.bob, name="lonely")
    Job.objects.filter(pk=dag.pk).update(state="held", state_reason="wrong calibration")
    page.goto(f"{live_server.url}{reverse('web:jobs')}?state=held&name=lonely")
    expect(page.get_by_text("wrong calibration").first).to_be_visible()

    page.keyboard.press("j")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(f"#pick-{dag.pk}")).to_be_focused()
    page.keyboard.press("Space")
    page.locator("#bulk-release").focus()
    page.keyboard.press("Enter")
    operation = _begun(page)
    page.locator("#confirm").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#how-far")
    finish(operation)

    assert operation.items.get().outcome == "done"


def test_without_scripts_boxes_and_buttons_do_the_same(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Callable[[User], None],
) -> None:
    login(made.people.sam)
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(page.context.cookies())
    plain = context.new_page()
    plain.goto(live_server.url + reverse("web:dags"))

    plain.locator(f"#pick-{made.held.pk}").check()
    plain.locator("#bulk-release").click()
    plain.locator("#confirm").click()
    plain.wait_for_selector("#how-far")

    operation = BulkOperation.objects.get()
    assert (operation.state, operation.action) == ("confirmed", "release")
    assert operation.items.get().object_id == made.held.pk
    context.close()
