"""A DAG grows: by the form of its page, and while its graph is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.page_checks import look, look_narrow
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.services.growth import GrowthRequest, grow_dag

FAULTY = "JOB check {\nexecutable = /bin/true\n}\nJOB report report.sub\nPARENT check CHILD repot\n"
FRAGMENT = "".join(f"JOB check{n} {{\nexecutable = /bin/true\n}}\n" for n in range(12))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_nodes_are_checked_and_added_on_the_page(
    page: Page, live_server: LiveServer, login: Callable[[User], None], pictures: Path | None
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    login(people.alice)
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
    page.locator("#to-grow").click()

    page.get_by_label("Fragment").fill(FAULTY)
    page.get_by_role("button", name="Only check").click()
    expect(page.locator("#findings-title")).to_contain_text("Nothing was added: 2 faults")
    expect(page.locator(".findings")).to_contain_text("PARENT check CHILD repot")
    assert look(page, "dag-grow-refused", pictures=pictures) == []
    assert look_narrow(page, "dag-grow-refused", pictures=pictures) == []
    page.get_by_label("Fragment").fill(FRAGMENT)
    page.get_by_role("button", name="Only check").click()
    expect(page.locator("#checked-title")).to_contain_text("12 nodes would be added")
    assert look(page, "dag-grow-checked", pictures=pictures) == []
    page.get_by_label("Reason").fill("more to look at")
    page.get_by_role("button", name="Add the nodes").click()

    expect(page.get_by_text("12 nodes are added.")).to_be_visible()
    dag.refresh_from_db()
    assert dag.node_count == 15


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_graph_says_that_its_dag_has_grown(
    page: Page, live_server: LiveServer, login: Callable[[User], None]
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    login(people.alice)
    address = live_server.url + reverse("web:dag", args=[dag.pk]) + "?tab=graph"
    with page.expect_response("**/graph/states"):
        page.goto(address)
    expect(page.locator("#graph-grown")).to_be_hidden()

    asked = GrowthRequest("JOB more {\nexecutable = /bin/true\n}\n")
    grow_dag(dag.pk, asked, actor=Actor.person(people.alice), reason="more")
    factories.turn()

    expect(page.locator("#graph-grown")).to_be_visible(timeout=20_000)
    page.locator("#graph-grown a").click()
    expect(page.locator("#graph")).to_contain_text("4 nodes")
