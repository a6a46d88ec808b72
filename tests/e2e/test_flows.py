"""Flows in the browser: login, submission, colours and menu."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import NARROW, Complaints
from wms.core.models import User
from wms.dags.models import Dag

Login = Callable[[User], None]


def _log_in(page: Page, password: str = factories.PASSWORD) -> None:
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_a_user_logs_in_twice_and_finds_again_what_was_typed_when_the_login_had_ended(
    page: Page, live_server: LiveServer, complaints: Complaints
) -> None:
    dag = factories.dag(factories.people().alice)
    at_dag = live_server.url + reverse("web:dag", args=[dag.pk])
    page.goto(at_dag)
    _log_in(page, "not this one")
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")
    _log_in(page)
    expect(page).to_have_url(at_dag)

    # A form that the browser sends.
    page.locator("#steering summary", has_text="Hold").click()
    form = page.locator("#steering form", has=page.get_by_role("button", name="Hold"))
    form.get_by_label("Reason").fill("campaign=mc27")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_role("button", name="Hold").click()
    _log_in(page)
    expect(page.locator("#typed-kept")).to_be_visible()
    expect(form.get_by_label("Reason")).to_have_value("campaign=mc27")
    page.reload()
    expect(page.locator("#typed-kept")).to_have_count(0)

    # A form that a script sends.
    page.goto(live_server.url + reverse("web:submit"))
    page.get_by_label("Labels").fill("campaign=mc28")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_role("button", name="Only check").click()
    _log_in(page)
    expect(page.locator("#typed-kept")).to_be_visible()
    expect(page.get_by_label("Labels")).to_have_value("campaign=mc28")

    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_faulty_dag_is_refused_with_its_line_and_a_mended_one_is_taken(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints, tmp_path: Path
) -> None:
    complaints.expected = {400}
    login(factories.people().alice)
    dag, other = tmp_path / "diamond.dag", tmp_path / "job.sub"
    other.write_text(factories.SUBMIT_FILE)
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    dag.write_text('JOB A job.sub\nVARS A number="1"\nPARENT A CHILD Z\n')
    page.goto(live_server.url + reverse("web:submit"))

    page.get_by_label("DAG file").set_input_files(dag)
    page.get_by_label("Files that it names").set_input_files([other, tmp_path / "run.sh"])
    expect(page.get_by_text("2 chosen: job.sub, run.sh")).to_be_visible()
    page.get_by_role("button", name="Check and submit").click()

    fault = page.locator(".findings li")
    expect(fault).to_contain_text("diamond.dag:3")
    expect(fault).to_contain_text("PARENT A CHILD Z")
    assert not Dag.objects.exists()

    dag.write_text('JOB A job.sub\nVARS A number="1"\n')
    # Browsers compare whole seconds.
    os.utime(dag, (dag.stat().st_mtime + 60,) * 2)
    page.get_by_role("button", name="Check and submit").click()
    # The browser refuses to send a file that changed after it was chosen.
    expect(page.locator("#findings [role=alert]")).to_contain_text("Choose again: DAG file")
    expect(fault).to_have_count(0)
    complaints.found.clear()

    page.get_by_label("DAG file").set_input_files(dag)
    page.get_by_role("button", name="Check and submit").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("diamond")
    assert Dag.objects.get().name == "diamond"


def test_a_folder_is_checked_and_submitted_with_the_paths_inside_of_it(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints, tmp_path: Path
) -> None:
    login(factories.people().alice)
    folder = tmp_path / "analysis"
    (folder / "sub").mkdir(parents=True)
    (folder / "case.dag").write_text("JOB A sub/job.sub\nJOB B sub/job.sub\nPARENT A CHILD B\n")
    (folder / "sub" / "job.sub").write_text(factories.SUBMIT_FILE.replace("$(number)", ""))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    page.goto(live_server.url + reverse("web:submit"))

    page.get_by_label("DAG file").set_input_files(folder / "case.dag")
    page.get_by_text("Files in folders").click()
    page.get_by_label("A folder with its contents").set_input_files(folder)
    expect(page.get_by_text("3 chosen: case.dag, run.sh, sub/job.sub")).to_be_visible()
    page.get_by_role("button", name="Only check").click()
    expect(page.get_by_role("heading", name="No fault was found")).to_be_visible()
    expect(page.locator("#findings")).to_contain_text("Height")
    assert not Dag.objects.exists()

    page.get_by_role("button", name="Check and submit").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("case")
    paths = Dag.objects.get().workspace.files.values_list("path", flat=True)
    assert set(paths) == {"case.dag", "run.sh", "sub/job.sub"}


def test_colours_follow_the_system_until_the_user_chooses_and_a_narrow_menu_opens_and_closes(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    login(factories.people().alice)
    page.emulate_media(color_scheme="dark")
    page.goto(live_server.url + reverse("web:dags"))
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")
    expect(page.get_by_role("button", name="Light")).to_have_attribute("aria-pressed", "true")

    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    link = page.get_by_role("link", name="History")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(link).to_be_visible()
    link.focus()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_focused()
