"""Common tasks in the browser: rerun a failing DAG, release a held one, save filters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.personal.models import Preferences
from tests import factories
from tests.e2e.conftest import NARROW, WIDE, Complaints
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


def test_a_held_dag_is_found_read_and_released_without_a_mouse(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
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
    _tab_to(page, "#steer-release summary")
    page.keyboard.press("Enter")
    _tab_to(page, "#steer-release button[type=submit]")
    page.keyboard.press("Enter")

    expect(page.get_by_role("status")).to_contain_text("is released")
    assert Dag.objects.get(pk=dag.pk).state == "running"


#: Each time of the page as it is read, and texts that hold a time and are none.
_TIMES = """() => {
  const times = [...document.querySelectorAll("main time.at")]
    .map((each) => [each.dateTime, each.textContent]);
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const loose = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const isTime = /\\d{4}-\\d\\d-\\d\\d.\\d\\d:\\d\\d/.test(node.data);
    if (isTime && !node.parentElement.closest("time, script")) loose.push(node.data.trim());
  }
  return {times, loose};
}"""


def test_another_zone_changes_every_time_of_a_page(
    page: Page, live_server: LiveServer, made: Production, login: Login, complaints: Complaints
) -> None:
    login(made.people.olga)
    pages = [
        reverse("web:dag", args=[made.rich.pk]),
        reverse("web:dag", args=[made.failed.pk]) + "?tab=events",
        reverse("web:job", args=[made.job.pk]),
        reverse("web:site", args=[made.site.name]),
        reverse("web:pilot", args=[made.pilot.pk]),
    ]
    seen = {}
    for zone in ("UTC", "Asia/Kolkata"):
        Preferences.objects.update_or_create(user=made.people.olga, defaults={"time_zone": zone})
        for address in pages:
            page.goto(live_server.url + address)
            seen[zone, address] = page.evaluate(_TIMES)

    for address in pages:
        before, after = seen["UTC", address]["times"], seen["Asia/Kolkata", address]["times"]
        assert len(before) == len(after) > 0
        for (moment, utc), (again, local) in zip(before, after, strict=True):
            assert moment == again
            assert utc.endswith("UTC"), (address, utc)
            assert local.endswith("IST"), (address, local)
            assert utc[14:19] != local[14:19], (address, utc, local)
        assert seen["Asia/Kolkata", address]["loose"] == [], address


def test_going_back_brings_the_filter_with_its_rows(
    page: Page, live_server: LiveServer, made: Production, login: Login, complaints: Complaints
) -> None:
    login(made.people.olga)
    page.goto(live_server.url + reverse("web:dags"))
    page.locator("#facet-running").click()
    page.wait_for_url("**/dags/?state=running")
    page.get_by_role("link", name="alice", exact=False).first.click()
    page.wait_for_url("**owner=alice**")
    chips = page.locator(".chips .chip")
    expect(chips).to_have_count(2)
    rows = page.locator("#live tbody tr .main > a")
    names = rows.all_inner_texts()
    rows.first.click()
    expect(page.get_by_role("heading", name="Progress")).to_be_visible()

    page.go_back()

    expect(chips).to_have_count(2)
    assert rows.all_inner_texts() == names
    page.go_back()
    expect(chips).to_have_count(1)
    expect(page.locator("#facet-running")).to_have_attribute("aria-current", "true")


#: Heard from the first paint on: every part that moved without somebody having asked for it.
_NOTE_MOVES = """
window.moves = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    window.moves.push(...entry.sources.map(({node, previousRect, currentRect}) =>
      `${node?.nodeName}.${node?.className} ${JSON.stringify([previousRect, currentRect])}`));
}).observe({type: "layout-shift", buffered: true});
"""
_REFRESH = """() => new Promise((resolve) => {
  const live = document.querySelector("#live");
  live.addEventListener("htmx:afterRequest", () => setTimeout(resolve, 50), {once: true});
  htmx.trigger(live, "pilotage:refresh");
})"""


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_jumps_while_a_page_is_refreshed(
    page: Page,
    live_server: LiveServer,
    made: Production,
    login: Login,
    complaints: Complaints,
    viewport: dict[str, int],
) -> None:
    page.set_viewport_size(viewport)  # type: ignore[arg-type]
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
        page.goto(live_server.url + address)
        page.evaluate("document.fonts.ready.then(() => { window.moves.length = 0 })")
        for number in range(3):
            # Something has changed each time, so that the part is exchanged.
            Dag.objects.filter(pk=made.running.pk).update(name=f"zmumu-{number}")
            made.people.bob.jobs.filter(state="waiting").update(state_reason=f"turn {number}")
            page.evaluate(_REFRESH)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        if moves := page.evaluate("window.moves"):
            moved[address] = moves

    assert moved == {}
