"""Live refresh of pages keeps scroll position, focus and input."""

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
from tests.e2e.production import Production
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services.dags import hold_dags


@pytest.fixture
def dashboard(
    page: Page, live_server: LiveServer, made: Production, login: Callable[[User], None]
) -> Page:
    """The dashboard of Olga, with the time in the test's hands."""
    history_data.fill(timezone.now(), [], back=timedelta(days=1), kinds=("jobs.",))
    login(made.people.olga)
    page.clock.install()
    page.goto(live_server.url + reverse("web:dashboard"))
    expect(page.locator("[data-chart-plot] .main-svg").first).to_be_visible()
    return page


def _refreshes(page: Page) -> list[Request]:
    seen: list[Request] = []
    page.on("request", lambda r: seen.append(r) if r.headers.get("hx-target") == "live" else None)
    return seen


def test_a_refresh_keeps_scroll_focus_and_chart(
    dashboard: Page, made: Production, complaints: Complaints
) -> None:
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


#: Ask for the live part now; fulfilled when the answer has been dealt with.
_REFRESH = """() => new Promise((resolve) => {
  const live = document.querySelector('#live');
  live.addEventListener('htmx:afterRequest', resolve, {once: true});
  htmx.trigger(live, 'pilotage:refresh');
}).then(() => true)"""


def test_what_is_pressed_stays_until_it_is_released(
    dashboard: Page, made: Production, complaints: Complaints
) -> None:
    """A click needs that both ends of it meet the same link."""
    link = dashboard.locator("#tile-dag-idle")
    link.hover()
    dashboard.mouse.down()
    factories.dag(made.people.bob, name="new.dag")

    dashboard.evaluate(_REFRESH)
    dashboard.mouse.up()

    dashboard.wait_for_url("**/dags/?state=idle")


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


def test_what_has_not_changed_is_not_sent_again(dashboard: Page, complaints: Complaints) -> None:
    dashboard.evaluate(_NOTE_ANSWERS)

    live = dashboard.locator("#live")
    for refreshes in (1, 2, 3):
        dashboard.clock.run_for(5_500)
        expect(live).to_have_attribute("data-answers", re.compile(rf"(\S+ ){{{refreshes},}}"))

    answers = (live.get_attribute("data-answers") or "").split()
    assert answers[0] == "200:false"
    assert set(answers[1:]) <= {"200:false", "304:true"}


def test_nothing_is_asked_while_paused_or_hidden(dashboard: Page, complaints: Complaints) -> None:
    asked = _refreshes(dashboard)

    dashboard.get_by_role("button", name="Pause").click()
    dashboard.clock.run_for(60_000)
    expect(dashboard.locator("#live-stamp")).to_contain_text("Paused, as of")
    assert asked == []

    dashboard.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    dashboard.get_by_role("button", name="Pause").click()
    dashboard.clock.run_for(60_000)
    assert asked == []


def test_old_data_are_marked_until_the_server_answers_again(
    dashboard: Page, complaints: Complaints
) -> None:
    dashboard.route("**/*", lambda route: route.abort("connectionrefused"))
    # One refresh only: complaints about a second one could come after they are cleared.
    dashboard.clock.run_for(5_500)
    expect(dashboard.get_by_role("alert")).to_contain_text("No answer from the server")
    complaints.found.clear()

    dashboard.unroute("**/*")
    dashboard.clock.run_for(10_500)

    expect(dashboard.locator("#live-alarm")).to_have_text("")


def test_a_session_that_ended_leads_to_the_login(
    dashboard: Page, made: Production, complaints: Complaints
) -> None:
    dashboard.context.clear_cookies()

    dashboard.clock.run_for(10_500)

    expect(dashboard.get_by_role("heading", name="Log in")).to_be_visible()


def test_the_chart_offers_to_send_nothing_away(dashboard: Page, complaints: Complaints) -> None:
    dashboard.locator("[data-chart-plot]").hover()

    expect(dashboard.locator("[data-title*='hare']")).to_have_count(0)
    config = dashboard.evaluate(
        "(({showSendToCloud, plotlyServerURL}) => [showSendToCloud, plotlyServerURL])"
        "(document.querySelector('[data-chart-plot]')._context)"
    )
    assert config == [False, ""]


def test_a_page_is_refreshed_at_the_pace_that_the_server_asks_for(
    dashboard: Page, made: Production, complaints: Complaints
) -> None:
    def slower(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "x-refresh-every": "30"})

    dashboard.route(lambda address: address.endswith("/"), slower)
    factories.dag(made.people.bob, name="new.dag")
    with dashboard.expect_response(lambda r: r.request.headers.get("hx-target") == "live"):
        dashboard.clock.run_for(5_500)
    expect(dashboard.locator("#tile-dag-idle b")).to_have_text(
        str(Dag.objects.filter(state="idle").count())
    )
    with dashboard.expect_response(lambda r: r.request.headers.get("hx-target") == "live"):
        dashboard.clock.run_for(5_000)
    seen = _refreshes(dashboard)

    dashboard.clock.run_for(20_000)
    assert len(seen) == 0
    with dashboard.expect_response(lambda r: r.request.headers.get("hx-target") == "live"):
        dashboard.clock.run_for(12_000)
    # An answer that is still on its way would be a failure of the next test.
    dashboard.unroute_all(behavior="wait")


@pytest.fixture
def running(
    page: Page, live_server: LiveServer, made: Production, login: Callable[[User], None]
) -> Page:
    """The page of a running DAG, with the time in the test's hands."""
    login(made.people.olga)
    page.clock.install()
    page.goto(live_server.url + reverse("web:dag", args=[made.running.pk]))
    expect(page.locator("#steer-hold")).to_be_visible()
    return page


def test_buttons_and_messages_follow_the_state(
    running: Page, made: Production, complaints: Complaints
) -> None:
    hold_dags([made.running.pk], actor=Actor.person(made.people.olga), reason="disk full")

    running.clock.run_for(5_500)

    expect(running.locator("#steer-release")).to_be_visible()
    expect(running.locator("#steer-hold")).to_have_count(0)
    running.locator("#steer-release summary").click()
    running.locator("#steer-release button").click()
    expect(running.locator("#steer-hold")).to_be_visible()
    expect(running.locator("main > .flash")).to_be_visible()
    hold_dags([made.running.pk], actor=Actor.person(made.people.olga), reason="disk full")
    running.clock.run_for(12_000)
    expect(running.locator("#live .state-chip").first).to_contain_text("held")
    expect(running.locator("main > .flash")).to_have_count(0)


def test_a_form_that_somebody_has_open_is_left_alone(
    running: Page, made: Production, complaints: Complaints
) -> None:
    running.locator("#steer-rematch summary").click()
    running.locator("#reason-rematch").fill("its storage is")
    hold_dags([made.running.pk], actor=Actor.person(made.people.olga), reason="disk full")

    running.clock.run_for(5_500)

    expect(running.locator("#live .state-chip").first).to_contain_text("held")
    expect(running.locator("#reason-rematch")).to_have_value("its storage is")
