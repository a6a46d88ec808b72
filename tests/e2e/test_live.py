"""Live refresh of pages keeps scroll position, focus and input, and tells when data are old."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, Request, Route, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.e2e import history_data
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import REFRESH
from tests.e2e.production import Production
from tests.wms.jobs.clusters.samples import PLAIN, submit
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags
from wms.jobs.models import Cluster

Login = Callable[[User], None]


@pytest.fixture
def dashboard(page: Page, live_server: LiveServer, made: Production, login: Login) -> Page:
    """The dashboard of Olga, with the time in the test's hands."""
    history_data.fill(timezone.now(), [], back=timedelta(days=1), kinds=("jobs.",))
    login(made.people.olga)
    page.clock.install()
    page.goto(live_server.url + reverse("web:dashboard"))
    expect(page.locator("[data-chart-plot] .main-svg").first).to_be_visible()
    return page


#: Ask for the live part now, whatever the clock says; fulfilled when the answer was dealt with.
_ASK = """() => new Promise((resolve) => {
  const live = document.querySelector('#live');
  live.addEventListener('htmx:afterRequest', resolve, {once: true});
  htmx.trigger(live, 'pilotage:refresh');
}).then(() => true)"""

# Looked at inside the page: a response that the test has heard of is not yet swapped in.
_NOTE_ANSWERS = """() => {
  const live = document.querySelector('#live');
  let part = live.firstElementChild;
  live.dataset.answers = '';
  live.addEventListener('htmx:afterRequest', (event) => {
    const kept = live.firstElementChild === part && part.isConnected;
    live.dataset.answers += `${event.detail.xhr.status}:${kept} `;
    part = live.firstElementChild;
  });
}"""


def test_a_refresh_keeps_scroll_focus_and_chart_and_what_is_pressed(
    dashboard: Page, made: Production, complaints: Complaints
) -> None:
    dashboard.evaluate(_NOTE_ANSWERS)
    live = dashboard.locator("#live")
    for refreshes in (1, 2, 3):
        dashboard.clock.run_for(5_500)
        expect(live).to_have_attribute("data-answers", re.compile(rf"(\S+ ){{{refreshes},}}"))
    # What has not changed is not sent again.
    answers = (live.get_attribute("data-answers") or "").split()
    assert answers[0] == "200:false"
    assert set(answers[1:]) <= {"200:false", "304:true"}

    dashboard.set_viewport_size({"width": 1000, "height": 500})
    dashboard.locator("#running-all").focus()
    dashboard.evaluate("window.scrollTo(0, 600)")
    dashboard.evaluate("window.plotBefore = document.querySelector('[data-chart-plot]')")
    before = dashboard.evaluate("window.scrollY")
    factories.dag(made.people.bob, name="new.dag")
    count = Dag.objects.filter(state="idle").count()
    dashboard.clock.run_for(10_500)
    expect(dashboard.locator("#tile-dag-idle b")).to_have_text(str(count))
    assert dashboard.evaluate("window.scrollY") == before > 0
    expect(dashboard.locator("#running-all")).to_be_focused()
    assert dashboard.evaluate(
        "window.plotBefore === document.querySelector('[data-chart-plot]')"
        " && window.plotBefore.querySelector('.main-svg') !== null"
    )

    # A click needs that both ends of it meet the same link.
    dashboard.locator("#tile-dag-idle").hover()
    dashboard.mouse.down()
    factories.dag(made.people.bob, name="newer.dag")
    dashboard.evaluate(_ASK)
    dashboard.mouse.up()
    dashboard.wait_for_url("**/dags/?state=idle")


_HIDE = """(now) =>
  Object.defineProperty(document, 'hidden', {get: () => now, configurable: true})"""


def _refreshes(page: Page) -> list[Request]:
    seen: list[Request] = []
    page.on("request", lambda r: seen.append(r) if r.headers.get("hx-target") == "live" else None)
    return seen


def test_a_page_asks_at_the_servers_pace_not_while_paused_or_hidden_and_tells_of_no_answer(
    dashboard: Page, made: Production, complaints: Complaints
) -> None:
    def slower(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "x-refresh-every": "30"})

    dashboard.route(lambda address: address.endswith("/"), slower)
    factories.dag(made.people.bob, name="new.dag")
    count = Dag.objects.filter(state="idle").count()
    with dashboard.expect_response(lambda r: r.request.headers.get("hx-target") == "live"):
        dashboard.clock.run_for(5_500)
    expect(dashboard.locator("#tile-dag-idle b")).to_have_text(str(count))
    with dashboard.expect_response(lambda r: r.request.headers.get("hx-target") == "live"):
        dashboard.clock.run_for(5_000)
    asked = _refreshes(dashboard)
    dashboard.clock.run_for(20_000)
    assert asked == []
    with dashboard.expect_response(lambda r: r.request.headers.get("hx-target") == "live"):
        dashboard.clock.run_for(12_000)
    dashboard.unroute_all(behavior="wait")

    asked.clear()
    dashboard.get_by_role("button", name="Pause").click()
    dashboard.clock.run_for(60_000)
    expect(dashboard.locator("#live-stamp")).to_contain_text("Paused, as of")
    assert asked == []
    hide = (
        "(now) => Object.defineProperty(document, 'hidden', {get: () => now, configurable: true})"
    )
    dashboard.evaluate(hide, True)
    dashboard.get_by_role("button", name="Pause").click()
    dashboard.clock.run_for(60_000)
    assert asked == []
    dashboard.evaluate(_HIDE, False)

    dashboard.route("**/*", lambda route: route.abort("connectionrefused"))
    dashboard.evaluate(_ASK)
    expect(dashboard.get_by_role("alert")).to_contain_text("No answer from the server")
    complaints.found.clear()
    dashboard.unroute("**/*")
    dashboard.evaluate(_ASK)
    expect(dashboard.locator("#live-alarm")).to_have_text("")

    dashboard.context.clear_cookies()
    dashboard.clock.run_for(31_000)
    expect(dashboard.get_by_role("heading", name="Log in")).to_be_visible()


def test_buttons_and_messages_follow_the_state_but_an_open_form_is_left_alone(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    people = factories.people()
    dag, olga = factories.running_dag(people.alice), Actor.person(people.olga)
    login(people.olga)
    page.clock.install()
    page.goto(live_server.url + reverse("web:dag", args=[dag.pk]))
    page.locator("#steer-rematch summary").click()
    page.locator("#reason-rematch").fill("its storage is")
    hold_dags([dag.pk], actor=olga, reason="disk full")
    page.clock.run_for(5_500)
    expect(page.locator("#live .state-chip").first).to_contain_text("held")
    expect(page.locator("#reason-rematch")).to_have_value("its storage is")

    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()
    page.clock.run_for(5_500)
    expect(page.locator("#steer-release")).to_be_visible()
    expect(page.locator("#steer-hold")).to_have_count(0)

    page.locator("#steer-release summary").click()
    page.locator("#steer-release button").click()
    expect(page.locator("#steer-hold")).to_be_visible()
    expect(page.locator("main > .flash")).to_be_visible()
    hold_dags([dag.pk], actor=olga, reason="disk full")
    page.clock.run_for(12_000)
    expect(page.locator("#live .state-chip").first).to_contain_text("held")
    expect(page.locator("main > .flash")).to_have_count(0)


def test_a_number_that_is_typed_outlives_a_refresh(
    page: Page, live_server: LiveServer, login: Login, complaints: Complaints
) -> None:
    alice = factories.people().alice
    cluster = submit(alice, f"{PLAIN}queue 60\n").cluster
    login(alice)
    page.goto(live_server.url + reverse("web:cluster", args=[cluster.pk]))

    page.locator("#process").fill("57")
    Cluster.objects.filter(pk=cluster.pk).update(done_count=11)
    page.evaluate(REFRESH)

    expect(page.locator("#live")).to_contain_text("11 of 60 done")
    assert page.locator("#process").input_value() == "57"
