"""DAG graph in the browser: keyboard, live states, growth, canvas."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.web.graph import tab
from tests import factories
from tests.e2e.conftest import WIDE, Complaints
from tests.e2e.page_checks import look, look_narrow
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.growth import GrowthRequest, grow_dag

Login = Callable[[User], None]
#: The states of a graph are asked for so often.
_TURN_MS = 5_100


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


def test_a_failed_node_is_opened_from_the_graph_and_rerun_and_the_graph_follows(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = _failed_chain(people)
    at_dag = live_server.url + reverse("web:dag", args=[dag.pk])
    login(people.sam)
    page.clock.install()
    page.goto(at_dag)

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

    page.goto(at_dag)
    page.get_by_role("link", name="Rerun with descendants").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#effects")).to_contain_text("1 node that depends on them ended already")
    page.get_by_label("Reason").fill("the disk was full")
    page.get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("status")).to_contain_text("Rerun: 2 nodes are changed")

    with page.expect_response("**/graph/states"):
        page.goto(_tab(live_server, dag, "graph"))
    page.locator("#graph-zoom [data-zoom=in]").click()
    page.get_by_role("link", name=re.compile("^A2: (waiting|ready)$")).focus()
    factories.turn()
    page.clock.run_for(_TURN_MS)
    expect(page.get_by_role("link", name="A2: submitted")).to_be_focused()

    expect(page.locator("#graph-grown")).to_be_hidden()
    asked = GrowthRequest("JOB more {\nexecutable = /bin/true\n}\n")
    grow_dag(dag.pk, asked, actor=Actor.person(people.alice), reason="more")
    factories.turn()
    page.clock.run_for(_TURN_MS)
    expect(page.locator("#graph-grown")).to_be_visible()
    page.locator("#graph-grown a").click()
    expect(page.locator("#graph")).to_contain_text("4 nodes")


def test_a_folded_graph_is_accessible_and_a_group_opens_in_place_and_closes_by_its_button(
    page: Page,
    live_server: LiveServer,
    login: Login,
    complaints: Complaints,
    monkeypatch: pytest.MonkeyPatch,
    pictures: Path | None,
) -> None:
    monkeypatch.setattr(tab, "WHOLE", (3, 3))
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=6)
    login(people.alice)
    page.goto(_tab(live_server, dag, "graph&fold=level"))
    faults = look(page, "dag-graph-folded", pictures=pictures)
    assert [*faults, *look_narrow(page, "dag-graph-folded", pictures=pictures)] == []
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]

    page.get_by_role("link", name=re.compile("Open level 1: 0 of 6 done")).click()
    expect(page.get_by_role("link", name="A3: submitted")).to_be_visible()
    expect(page).to_have_url(re.compile("open=level"))
    page.get_by_role("link", name="Close level 1").click()

    expect(page.get_by_role("link", name="A3: submitted")).to_have_count(0)


def test_the_cells_of_a_large_dag_are_accessible_and_walked_by_keyboard(
    page: Page,
    live_server: LiveServer,
    login: Login,
    complaints: Complaints,
    monkeypatch: pytest.MonkeyPatch,
    pictures: Path | None,
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
    assert look(page, "dag-graph-cells", pictures=pictures) == []
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("A2")
