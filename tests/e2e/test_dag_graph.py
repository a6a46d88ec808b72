"""DAG graph in the browser: keyboard, live states, canvas."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.web.graph import tab
from tests import factories
from tests.e2e.conftest import NARROW, WIDE, Complaints
from tests.e2e.page_checks import look, look_narrow
from wms.core.models import User
from wms.dags.models import Dag

Login = Callable[[User], None]
_AXE = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}


def _failed_chain(people: SimpleNamespace) -> Dag:
    """A chain of three nodes, of which the second failed and the third never ran."""
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    factories.run_job(pilot)
    factories.turn()
    factories.run_job(pilot, exit_code=1)
    factories.turn()
    return dag


def _tab(live_server: LiveServer, dag: Dag, query: str) -> str:
    return f"{live_server.url}{reverse('web:dag', args=[dag.pk])}?tab={query}"


def test_a_node_is_opened_from_the_graph_by_keyboard(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = _failed_chain(people)
    login(people.sam)
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))

    page.locator("#tab-graph").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?tab=graph#tab$"))
    # What has the focus is told by a script, which comes after the drawing.
    page.wait_for_load_state()
    page.locator("#graph-scroll").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")

    expect(page.get_by_role("link", name="A2: failed")).to_be_focused()
    expect(page.locator("#graph-told")).to_contain_text("A2: failed; 2 neighbours")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("A2")


def test_a_failed_node_is_rerun_with_its_descendants_and_the_states_change(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = _failed_chain(people)
    login(people.sam)
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))

    page.get_by_role("link", name="Rerun with descendants").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#effects")).to_contain_text("1 node that depends on them ended already")
    page.get_by_label("Reason").fill("the disk was full")
    page.get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("status")).to_contain_text("Rerun: 2 nodes are changed")

    page.goto(_tab(live_server, dag, "graph"))
    expect(page.get_by_role("link", name=re.compile("^A2: (waiting|ready)$"))).to_be_visible()
    factories.turn()
    expect(page.get_by_role("link", name="A2: submitted")).to_be_visible(timeout=15_000)
    page.goto(_tab(live_server, dag, "events"))
    row = page.locator("#events-box tbody tr").filter(has_text="the disk was full").first
    expect(row).to_contain_text("sam")


def test_the_states_in_the_graph_follow_those_of_the_nodes(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=2, is_chain=True)
    login(people.alice)
    page.goto(_tab(live_server, dag, "graph"))
    expect(page.get_by_role("link", name="A1: submitted")).to_be_visible()
    page.get_by_role("link", name="A1: submitted").focus()

    factories.run_job(factories.pilot(dag.site.queues.get()))
    factories.turn()

    expect(page.get_by_role("link", name="A1: done")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("link", name="A1: done")).to_be_focused()
    expect(page.get_by_role("link", name="A2: submitted")).to_be_visible()


def test_a_group_opens_in_place_and_closes_by_its_button(
    page: Page,
    live_server: LiveServer,
    login: Login,
    complaints: Complaints,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tab, "WHOLE", (3, 3))
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=6)
    login(people.alice)
    page.goto(_tab(live_server, dag, "graph&fold=level"))

    page.get_by_role("link", name=re.compile("Open level 1: 0 of 6 done")).click()
    expect(page.get_by_role("link", name="A3: submitted")).to_be_visible()
    expect(page).to_have_url(re.compile("open=level"))
    page.get_by_role("link", name="Close level 1").click()

    expect(page.get_by_role("link", name="A3: submitted")).to_have_count(0)


def test_the_cells_of_a_large_dag_are_walked_by_keyboard(
    page: Page,
    live_server: LiveServer,
    login: Login,
    complaints: Complaints,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tab, "WHOLE", (1, 1))
    monkeypatch.setattr(tab, "FOLDED", (2, 2))
    people = factories.people()
    dag = _failed_chain(people)
    login(people.alice)
    page.goto(_tab(live_server, dag, "graph"))
    canvas = page.locator("#graph-canvas")
    expect(canvas).to_be_visible()

    canvas.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#graph-told")).to_contain_text("A1: done, level 1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#graph-told")).to_contain_text("A2: failed, level 2")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert Axe().run(page, options=_AXE).response["violations"] == []
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("A2")


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_folded_graph_is_accessible(
    page: Page,
    live_server: LiveServer,
    login: Login,
    complaints: Complaints,
    monkeypatch: pytest.MonkeyPatch,
    viewport: dict[str, int],
) -> None:
    monkeypatch.setattr(tab, "WHOLE", (1, 1))
    people = factories.people()
    dag = _failed_chain(people)
    login(people.alice)
    page.set_viewport_size(viewport)

    page.goto(_tab(live_server, dag, "graph&fold=level"))

    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert Axe().run(page, options=_AXE).response["violations"] == []


def test_a_graph_with_conditions_joins_and_gates_is_accessible(
    page: Page,
    live_server: LiveServer,
    login: Login,
    complaints: Complaints,
    pictures: Path | None,
) -> None:
    people = factories.people()
    dag = factories.deciding_dag(people.alice)
    login(people.alice)
    page.goto(_tab(live_server, dag, "graph"))
    gate = page.get_by_role("link", name="g: ready (gate)")
    expect(gate).to_be_visible()
    expect(page.get_by_role("link", name="M: waiting, needs any of its 3 arcs")).to_be_visible()

    page.locator("#graph-zoom [data-zoom=in]").click()
    gate.focus()

    expect(page.locator("#graph-told")).to_contain_text("g: ready (gate); 1 neighbour")
    faults = look(page, "dag-deciding-graph", pictures=pictures)
    assert not [*faults, *look_narrow(page, "dag-deciding-graph", pictures=pictures)]
