"""Form by which a DAG grows, in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import look, look_narrow
from wms.core.models import User

FAULTY = "JOB check {\nexecutable = /bin/true\n}\nJOB report report.sub\nPARENT check CHILD repot\n"
FRAGMENT = "".join(f"JOB check{n} {{\nexecutable = /bin/true\n}}\n" for n in range(12))


def test_nodes_are_checked_and_added_on_the_page(
    page: Page,
    live_server: LiveServer,
    login: Callable[[User], None],
    complaints: Complaints,
    pictures: Path | None,
) -> None:
    complaints.expected = {400}
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=3, is_chain=True)
    login(people.alice)
    page.goto(live_server.url + reverse("web:dag-grow", args=[dag.pk]))

    page.get_by_label("Fragment").fill(FRAGMENT)
    page.get_by_role("button", name="Only check").click()
    expect(page.locator("#checked-title")).to_contain_text("12 nodes would be added")
    faults = look(page, "dag-grow-checked", pictures=pictures)
    page.get_by_label("Fragment").fill(FAULTY)
    page.get_by_role("button", name="Only check").click()
    expect(page.locator("#findings-title")).to_contain_text("Nothing was added: 2 faults")
    expect(page.locator(".findings")).to_contain_text("PARENT check CHILD repot")
    faults += look(page, "dag-grow-refused", pictures=pictures)
    assert [*faults, *look_narrow(page, "dag-grow-refused", pictures=pictures)] == []

    page.get_by_label("Fragment").fill(FRAGMENT)
    page.get_by_label("Reason").fill("more to look at")
    page.get_by_role("button", name="Add the nodes").click()
    expect(page.get_by_text("12 nodes are added.")).to_be_visible()
    dag.refresh_from_db()
    assert dag.node_count == 15
