"""A DAG is edited and submitted anew, without scripts, and after the login has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import Complaints, log_in
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.submission.workspaces import read_file

_MENDED = "#!/bin/sh\n\techo 'mended'  \n\n"


def test_a_text_is_mended_compared_and_submitted_without_scripts(
    browser: Browser, browser_context_args: dict[str, Any], live_server: LiveServer
) -> None:
    alice = factories.people().alice
    dag = factories.dag(alice, node_count=1)
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    log_in(context, live_server, alice)
    page = context.new_page()
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
    page.get_by_role("link", name="Edit and resubmit").click()

    text = page.get_by_label("analysis.dag", exact=True)
    good = text.input_value()
    text.fill(f"{good}JOBB x\n")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".findings")).to_contain_text("analysis.dag:3")
    expect(text).to_have_value(f"{good}JOBB x\n")

    text.fill(good)
    page.locator("summary", has_text="run.sh").click()
    page.get_by_label("run.sh", exact=True).fill(_MENDED)
    page.get_by_role("button", name="Show changes").click()
    expect(page.locator(".diff .added").first).to_have_text("+\techo 'mended'  ")
    assert page.locator(".diff").count() == 1

    page.get_by_label("Reason").fill("a typo")
    page.get_by_role("button", name="Submit as a new DAG").click()
    expect(page.locator("#previous-run")).to_have_text(f"DAG {dag.pk}")
    new = Dag.objects.get(previous_run=dag)
    assert read_file(new.workspace_id, "run.sh") == _MENDED.encode()
    assert read_file(new.workspace_id, "analysis.dag") == read_file(
        dag.workspace_id, "analysis.dag"
    )
    context.close()


def test_typed_texts_are_found_again_after_a_login(
    page: Page, live_server: LiveServer, login: Callable[[User], None], complaints: Complaints
) -> None:
    alice = factories.people().alice
    dag = factories.dag(alice, node_count=1)
    login(alice)
    page.goto(live_server.url + reverse("web:dag-edit", args=[dag.pk]))
    page.locator("summary", has_text="run.sh").click()
    page.get_by_label("run.sh", exact=True).fill(_MENDED)
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_role("button", name="Check", exact=True).click()

    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in").click()

    expect(page.locator("#typed-kept")).to_be_visible()
    expect(page.get_by_label("run.sh", exact=True)).to_have_value(_MENDED)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#effect")).to_be_visible()
