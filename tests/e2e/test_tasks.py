"""Common tasks in the browser: rerun a failing DAG, release a held one; pages that stand still."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import NARROW, WIDE, Complaints
from tests.e2e.page_checks import REFRESH
from tests.e2e.production import Production
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags

Login = Callable[[User], None]


def test_the_failing_dag_is_found_from_the_overview_and_its_nodes_run_again(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, name="higgs.dag", node_count=3)
    factories.run_job(factories.pilot(), exit_code=3)
    factories.turn()
    login(people.sam)

    page.goto(live_server.url + reverse("web:dashboard"))
    line = page.locator(".needs li", has_text="higgs")
    expect(line).to_contain_text("failing")
    line.get_by_role("link", name=re.compile("^Failed nodes")).click()
    failed = page.locator("#nodes-box tbody tr", has_text="failed")
    expect(failed).to_have_count(1)
    expect(failed).to_contain_text("the payload ended with exit code 3")

    failed.get_by_role("checkbox").check()
    page.get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 node")
    page.get_by_label("Reason").fill("the disk is repaired")
    page.get_by_role("button", name=re.compile("^Rerun")).click()

    expect(page.get_by_role("status")).to_contain_text("will run again")
    expect(page.locator("#events-box")).to_contain_text("the disk is repaired")
    assert "failed" not in set(dag.nodes.values_list("state", flat=True))


def _tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is there, as somebody without a mouse does."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("(css) => Boolean(document.activeElement?.matches(css))", selector):
            return
    raise AssertionError(f"Tab never comes to {selector}")


def test_a_held_dag_is_found_released_and_held_again_without_a_mouse(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    complaints.expected = {400}
    people = factories.people()
    dag = factories.running_dag(people.alice, name="higgs.dag")
    hold_dags([dag.pk], actor=Actor.person(people.alice), reason="the input is wrong")
    login(people.sam)
    page.goto(live_server.url + reverse("web:dashboard"))

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    _tab_to(page, f"#needy-{dag.pk}")
    page.keyboard.press("Enter")
    expect(page.locator("#live .reason")).to_have_text("the input is wrong")
    release = page.locator("#steer-release summary")
    _tab_to(page, "#steer-release summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#reason-release")).to_be_hidden()
    expect(release).to_be_focused()
    expect(release).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    _tab_to(page, "#steer-release button[type=submit]")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("is released")
    assert Dag.objects.get(pk=dag.pk).state == "running"

    page.locator("#steer-hold summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("   ")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#fault-hold")).to_contain_text("Give a reason")
    page.locator("#reason-hold").fill("disk full")
    page.get_by_role("button", name="Hold this DAG").click()
    expect(page.get_by_role("status")).to_contain_text(f"DAG {dag.pk} is held")
    row = page.locator("#events-box tbody tr").filter(has_text="disk full").first
    expect(row).to_contain_text("sam")


#: Heard from the first paint on: every part that moved without somebody having asked for it.
_NOTE_MOVES = """
window.moves = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    window.moves.push(...entry.sources.map(({node, previousRect, currentRect}) =>
      `${node?.nodeName}.${node?.className} ${JSON.stringify([previousRect, currentRect])}`));
}).observe({type: "layout-shift", buffered: true});
"""
_FORGET_MOVES = """() => document.fonts.ready
  .then(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))
  .then(() => { window.moves.length = 0 })"""
_PAINTED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def test_nothing_jumps_while_a_page_is_refreshed(
    page: Page, live_server: LiveServer, made: Production, login: Login, complaints: Complaints
) -> None:
    page.add_init_script(_NOTE_MOVES)
    login(made.people.olga)
    moved = {}
    for address in (
        reverse("web:dashboard"),
        reverse("web:dags"),
        reverse("web:jobs"),
        reverse("web:dag", args=[made.running.pk]),
        reverse("web:site", args=[made.site.name]),
    ):
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        page.goto(live_server.url + address)
        for viewport in (WIDE, NARROW):
            page.set_viewport_size(viewport)  # type: ignore[arg-type]
            page.evaluate(_FORGET_MOVES)
            for number in range(2):
                # Something has changed each time, so that the part is exchanged.
                name = f"zmumu-{viewport['width']}-{number}"
                Dag.objects.filter(pk=made.running.pk).update(name=name)
                made.people.bob.jobs.filter(state="waiting").update(state_reason=name)
                page.evaluate(REFRESH)
            page.evaluate(_PAINTED)
            if moves := page.evaluate("window.moves"):
                moved[address, viewport["width"]] = moves

    assert moved == {}


def test_the_head_of_a_list_stands_where_it_is_before_its_script_has_come(
    page: Page, live_server: LiveServer, login: Login
) -> None:
    people = factories.people()
    factories.job(people.alice)
    login(people.sam)
    head = page.locator("thead a.sort").first
    page.route("**/js/bulk*.js", lambda route: route.abort())
    page.goto(live_server.url + reverse("web:jobs"))
    before = head.bounding_box()

    page.unroute("**/js/bulk*.js")
    page.reload()

    expect(page.locator("#pick-page")).to_be_visible()
    assert head.bounding_box() == before
