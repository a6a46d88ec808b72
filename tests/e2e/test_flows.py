"""Flows in the browser, from the login to a released DAG."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e.conftest import NARROW, WIDE, Complaints
from tests.e2e.page_checks import look, look_narrow
from tests.wms.bulk.conftest import finish
from wms.bulk.models import BulkOperation
from wms.core.models import User
from wms.dags.models import Dag

Login = Callable[[User], None]


def test_a_user_logs_in_lands_where_they_wanted_to_and_logs_out(
    page: Page, live_server: LiveServer, complaints: Complaints
) -> None:
    factories.people()
    page.goto(live_server.url + reverse("web:jobs"))

    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")

    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(live_server.url + reverse("web:jobs"))

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


@pytest.mark.parametrize("way", ["script", "plain"])
def test_what_was_typed_stands_there_again_when_the_login_had_ended(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints, way: str
) -> None:
    people = factories.people()
    login(people.alice)
    dag = factories.dag(people.alice)
    if way == "script":
        page.goto(live_server.url + reverse("web:submit"))
        typed, button = page.get_by_label("Labels"), "Only check"
    else:
        page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
        page.locator("#steering summary", has_text="Hold").click()
        form = page.locator("#steering form", has=page.get_by_role("button", name="Hold"))
        typed, button = form.get_by_label("Reason"), "Hold"
    typed.fill("campaign=mc27")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_role("button", name=button).click()

    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in").click()

    expect(page.locator("#typed-kept")).to_be_visible()
    expect(typed).to_have_value("campaign=mc27")
    page.reload()
    expect(page.locator("#typed-kept")).to_have_count(0)


def test_a_shifter_holds_and_releases_a_dag_with_the_keyboard_and_the_reason_is_kept(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    complaints.expected = {400}
    people = factories.people()
    dag = factories.running_dag(people.alice)
    login(people.sam)
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))

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

    page.locator("#steer-release summary").click()
    page.keyboard.press("Escape")
    expect(page.locator("#reason-release")).to_be_hidden()
    expect(page.locator("#steer-release summary")).to_be_focused()
    expect(page.locator("#steer-release summary")).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Release this DAG").click()
    expect(page.get_by_role("status")).to_contain_text("is released")
    dag.refresh_from_db()
    assert dag.state == "running"


def test_a_user_sees_no_way_to_steer_the_dag_of_another(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice)
    login(people.bob)

    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))

    expect(page.get_by_role("heading", name="Progress")).to_be_visible()
    expect(page.locator(".steer")).to_have_count(0)


def test_colours_follow_the_system_until_the_user_chooses(
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


def test_the_menu_opens_and_closes_on_a_narrow_screen(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    login(factories.people().alice)
    page.set_viewport_size(NARROW)
    page.goto(live_server.url + reverse("web:dags"))
    link = page.get_by_role("link", name="History")
    expect(link).to_be_hidden()

    page.get_by_role("button", name="Menu").click()
    expect(link).to_be_visible()
    link.focus()
    page.keyboard.press("Escape")

    expect(link).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_focused()


def test_a_shifter_goes_from_the_overview_to_what_a_failed_job_printed(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, name="higgs.dag", node_count=1)
    factories.run_job(factories.pilot(), exit_code=3, stdout=b"row 17 has 3 columns\n")
    factories.turn()
    login(people.sam)
    page.goto(live_server.url + reverse("web:dashboard"))

    page.locator(".needs .what").get_by_role("link", name=re.compile("higgs")).click()
    expect(page).to_have_url(live_server.url + reverse("web:dag", args=[dag.pk]))
    page.get_by_role("link", name="Show the failed nodes").click()
    page.locator("#nodes-box [id$=-job]").click()

    expect(page.locator("#stdout-log")).to_contain_text("row 17 has 3 columns")


@pytest.fixture
def browser_context_args_without_scripts(browser_context_args: dict) -> dict:
    return {**browser_context_args, "java_script_enabled": False}


def test_pages_work_without_scripts(
    browser, live_server: LiveServer, browser_context_args_without_scripts: dict, tmp_path: Path
) -> None:
    factories.people()
    dag = tmp_path / "lonely.dag"
    dag.write_text("JOB A missing.sub\n")
    page = browser.new_context(**browser_context_args_without_scripts).new_page()
    page.goto(live_server.url + reverse("web:submit"))
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Log in").click()

    page.get_by_label("DAG file").set_input_files(dag)
    page.get_by_role("button", name="Check and submit").click()

    expect(page.locator(".findings")).to_contain_text("missing.sub")
    expect(page.locator(".findings")).to_contain_text("lonely.dag:1")
    page.context.close()


def test_a_shifter_selects_dags_on_a_narrow_screen_and_takes_them_from_their_sites(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    first, second = (factories.running_dag(user) for user in (people.alice, people.bob))
    other = factories.running_dag(people.alice)
    login(people.sam)
    page.set_viewport_size(NARROW)
    page.goto(live_server.url + reverse("web:dags"))

    for dag in (first, second):
        page.locator(f"#pick-{dag.pk}").check()
    # A refresh of the list keeps what is ticked.
    Dag.objects.filter(pk=other.pk).update(name="renamed")
    expect(page.get_by_role("link", name="renamed")).to_be_visible(timeout=15_000)
    expect(page.locator(f"#pick-{first.pk}")).to_be_checked()
    expect(page.locator(f"#pick-{other.pk}")).not_to_be_checked()

    page.get_by_role("button", name="Rematch").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rematch: 2 DAGs")
    page.get_by_label("Reason").fill("the site burns")
    page.get_by_label("Let jobs that run finish where they are").check()
    page.get_by_role("button", name="Rematch 2 DAGs").click()
    page.wait_for_selector("#how-far")
    finish(BulkOperation.objects.get())

    states = dict(Dag.objects.values_list("pk", "state"))
    assert states == {first.pk: "idle", second.pk: "idle", other.pk: "running"}


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


def test_failed_nodes_are_ticked_in_the_list_and_retried_after_a_look(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag = factories.running_dag(people.alice, node_count=2)
    pilot = factories.pilot(dag.site.queues.get())
    for _ in range(2):
        factories.run_job(pilot, exit_code=1)
    factories.turn()
    login(people.alice)
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))

    page.locator("#tab-nodes").click()
    page.get_by_label("Select node A2").check()
    page.get_by_role("button", name="Retry now").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry now: 1 node")
    expect(page.locator("#effects")).to_contain_text("opened again")
    page.get_by_label("Reason").fill("the node was full")
    page.get_by_role("button", name="Retry now").click()

    expect(page.get_by_role("status")).to_contain_text("Node A2 will run again")
    expect(page.locator("#events-box")).to_contain_text("the node was full")
    states = dict(dag.nodes.values_list("name", "state"))
    assert (states["A1"], states["A2"] != "failed") == ("failed", True)


def test_a_gate_is_opened_from_the_overview(
    page: Page,
    live_server: LiveServer,
    login: Callable[[User], None],
    complaints: Complaints,
    pictures: Path | None,
) -> None:
    people = factories.people()
    dag = factories.deciding_dag(people.alice)
    lines = "".join(f"GATE sign_off_{at}{' DEADLINE 12h' if at % 3 else ''}\n" for at in range(9))
    factories.running_dag(people.bob, name="reprocessing.dag", commands=lines)
    login(people.sam)
    page.goto(live_server.url)
    expect(page.get_by_role("heading", name="Waits for your yes")).to_be_visible()
    faults = look(page, "dashboard-gates", pictures=pictures)
    faults += look_narrow(page, "dashboard-gates", pictures=pictures)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
    faults += look(page, "dag-gates", pictures=pictures)
    assert not [*faults, *look_narrow(page, "dag-gates", pictures=pictures)]

    page.goto(live_server.url)
    page.get_by_role("link", name="Open the gate g", exact=True).click()
    page.get_by_label("Reason").fill("it looks well")
    page.get_by_role("button", name="Open gate").click()

    expect(page.get_by_role("status")).to_contain_text("Node g is open")
    assert dag.nodes.get(name="g").state == "done"
