"""Shifter in the browser: a DAG that gets no site."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.submission.submit import DagSubmission, submit_dag

Login = Callable[[User], None]


def _greedy_dag(people: SimpleNamespace) -> Dag:
    """A DAG that wants more memory than the site has; a negotiation has looked at it."""
    factories.site("Small", attributes="Memory = 12288")
    submission = DagSubmission(
        dag_name="greedy.dag",
        dag_text=factories.dag_text(1),
        files={
            "job.sub": io.BytesIO(factories.SUBMIT_FILE.encode()),
            "run.sh": io.BytesIO(b"#!/bin/sh\n"),
        },
        description_text="+Need = 16384\nrequirements = TARGET.Memory >= Need\nqueue\n",
        description_name="whole.sub",
    )
    dag = submit_dag(submission, owner=people.alice, actor=Actor.person(people.alice))
    factories.turn()
    return dag


def _ask_and_try(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Why? And what would help?").click()
    expect(page.get_by_role("heading", name="Never", exact=True)).to_be_visible()
    row = page.get_by_role("row").filter(has_text="TARGET.Memory >= Need")
    expect(row).to_contain_text("0 of 1")

    page.get_by_role("link", name="What if?").first.click()
    after = page.get_by_role("row").filter(has_text="Both sides agree")
    expect(after).to_contain_text("1 of 1")
    expect(page.get_by_label("Attributes of the DAG")).to_have_value("Need = 12288")

    page.get_by_label("Attributes of the DAG").fill("Need = (")
    page.get_by_role("button", name="What if?").click()
    expect(page.locator("#fault-change")).to_contain_text("Line 1: Need: not a ClassAd expression")

    page.get_by_label("Attributes of the DAG").fill("")
    page.get_by_label("A site (optional)").fill("Small")
    page.get_by_label("Attributes of that site").fill("Memory = 20000")
    page.get_by_role("button", name="What if?").click()
    expect(page.get_by_role("row").filter(has_text="Verdict")).to_contain_text("Would match now")


def test_a_shifter_asks_why_and_tries_what_would_help(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    complaints.expected = {400}
    people = factories.people()
    dag = _greedy_dag(people)
    login(people.sam)

    _ask_and_try(page, live_server.url + reverse("web:dag", args=[dag.pk]))

    dag.refresh_from_db()
    assert dag.state == "idle"
    assert dag.ad_attributes["Need"] == "16384"


@pytest.fixture
def plain_page(browser: Browser, browser_context_args: dict[str, Any]) -> Iterator[Page]:
    """A page without scripts."""
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_asking_works_without_scripts(plain_page: Page, live_server: LiveServer) -> None:
    people = factories.people()
    dag = _greedy_dag(people)
    plain_page.goto(live_server.url + reverse("web:login"))
    plain_page.get_by_label("User name").fill("sam")
    plain_page.get_by_label("Password").fill(factories.PASSWORD)
    plain_page.get_by_role("button", name="Log in").click()

    _ask_and_try(plain_page, live_server.url + reverse("web:dag", args=[dag.pk]))
