"""History page in the browser: zoom, legend, exports, colours."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.history.palettes import PALETTES, Scheme
from tests import factories
from tests.e2e import history_data
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import AXE, IS_SETTLED, keep_pictures
from wms.core.models import User

Login = Callable[[User], None]
#: What a chart holds: from when to when, the bins, and their width.
_WINDOW = """(box) => {
  const {from, to, bins, step_s} = box.pilotageData.figure.layout.meta;
  return {hours: (Date.parse(to) - Date.parse(from)) / 3600e3, bins, step_s};
}"""


#: Whether all charts have this ground.
_IS_DRAWN_IN = """(surface) => [...document.querySelectorAll("[data-chart-plot]")].every(
  (plot) => plot._fullLayout?.paper_bgcolor === surface)"""
_COLOURS = """() => document.querySelector("#panel-jobs [data-chart-plot]")
  ._fullData.map((trace) => trace.line?.color)"""
_FIRST_TIME = "(box) => box.pilotageData.figure.data.find((trace) => trace.name).x0"


@pytest.fixture
def past() -> timedelta:
    """What most charts of these tests show, and more; a week takes as long as a test."""
    return timedelta(days=2)


@pytest.fixture
def history(page: Page, live_server: LiveServer, login: Login, past: timedelta) -> Iterator[Page]:
    """The history page of Vera, who may read only, and two sites with a past."""
    people = factories.people()
    sites = ["T2-North", "T2-South"]
    for name in sites:
        factories.site(name)
    history_data.fill(timezone.now(), sites, back=past, kinds=("jobs.", "pilots."))
    login(people.vera)
    page.goto(f"{live_server.url}{reverse('web:history')}?pane=jobs&pane=pilots&pane=pressure")
    yield page
    # An answer that is still on its way would be a failure of the next test.
    page.wait_for_function(IS_SETTLED)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def drawn(box: Locator) -> Locator:
    expect(box.locator(".main-svg").first).to_be_visible()
    return box


def zoom(page: Page, box: Locator, start: float, end: float) -> None:
    """Draw a range in a chart, from and to these parts of its width."""
    area = box.locator(".nsewdrag").bounding_box()
    assert area is not None
    height = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + start * area["width"], height)
    page.mouse.down()
    page.mouse.move(area["x"] + end * area["width"], height, steps=8)
    page.mouse.up()


@pytest.mark.parametrize("past", [timedelta(days=8)], ids=["week"])
def test_last_weeks_pilots_of_a_site_are_drawn_zoomed_and_taken_away(
    history: Page, complaints: Complaints, tmp_path: Path
) -> None:
    history.get_by_label("Site", exact=True).select_option("T2-North")
    history.get_by_role("button", name="Show").click()
    expect(history.get_by_role("heading", level=1)).to_contain_text("T2-North")
    history.get_by_role("link", name="1 w", exact=True).click()

    box = drawn(history.locator("#panel-pressure"))
    expect(history).to_have_url(re.compile(r"site=T2-North"))
    expect(history).to_have_url(re.compile(r"range=1w"))
    expect(box.locator("[data-line]")).to_have_text(["requested", "granted", "running", "queued"])
    expect(box.locator("[data-chart-note]")).to_contain_text("Mean and max of 20 min,")
    expect(box.locator("[data-chart-summary]")).to_contain_text("Requested:")
    before = box.evaluate(_WINDOW)
    assert before["hours"] == pytest.approx(168, abs=0.1)

    zoom(history, box, 0.95, 0.97)

    expect(history).to_have_url(re.compile(r"from=.*&to="))
    expect(box.locator("[data-chart-note]")).to_contain_text("Mean and max of 1 min,")
    after = drawn(box).evaluate(_WINDOW)
    assert after["hours"] == pytest.approx(0.02 * 168, rel=0.15)
    assert parse_qs(urlsplit(history.url).query)["site"] == ["T2-North"]
    other = drawn(history.locator("#panel-pilots")).evaluate(_WINDOW)
    assert other["hours"] == after["hours"]

    with history.expect_download() as download:
        box.get_by_role("link", name="CSV").click()
    assert re.fullmatch(
        r"pilotage-pressure-T2-North-\d{8}T\d{4}Z-\d{8}T\d{4}Z-1min\.csv",
        download.value.suggested_filename,
    )
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert len(rows) == after["bins"]
    assert float(rows[0]["requested_avg_pilots"]) > 0

    with history.expect_download() as download:
        box.get_by_role("button", name="PNG").click()
    assert download.value.suggested_filename.endswith("-1min.png")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")

    history.go_back()
    expect(box.locator("[data-chart-note]")).to_contain_text("Mean and max of 20 min,")
    history.go_back()
    expect(history.locator(".segments [aria-current]")).to_have_text("1 d")


def test_a_line_is_folded_by_its_button_and_the_table_unfolds(
    history: Page, complaints: Complaints
) -> None:
    box = drawn(history.locator("#panel-jobs"))
    running = box.get_by_role("button", name="running")
    lines = "(plot) => plot.data.filter((t) => t.name && t.visible === true).map((t) => t.name)"
    plot = box.locator("[data-chart-plot]")
    assert "running" in plot.evaluate(lines)
    assert "done" not in plot.evaluate(lines)

    running.focus()
    history.keyboard.press("Enter")

    expect(running).to_have_attribute("aria-pressed", "false")
    expect(running).to_be_focused()
    assert "running" not in plot.evaluate(lines)

    box.get_by_text("Jobs by state as a table").click()
    expect(box.locator("tbody tr")).to_have_count(60)
    expect(box.locator("tbody tr").first).to_contain_text("UTC")


#: Whether the cursor of a chart stands in its middle.
_IS_IN_THE_MIDDLE = """(panel) => {
  const box = document.querySelector(panel);
  const place = (name) => box.querySelector(name)?.getBoundingClientRect();
  const [cursor, area] = [place(".chart-cursor"), place(".nsewdrag")];
  return cursor && area && Math.abs(cursor.x - area.x - area.width / 2) < 8;
}"""


def test_the_cursor_is_shown_in_all_charts(history: Page, complaints: Complaints) -> None:
    jobs = drawn(history.locator("#panel-jobs"))
    drawn(history.locator("#panel-pressure"))
    area = jobs.locator(".nsewdrag").bounding_box()
    assert area is not None

    history.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)

    history.wait_for_function(_IS_IN_THE_MIDDLE, arg="#panel-pressure")
    expect(jobs.locator(".chart-cursor")).to_be_hidden()


def test_gaps_are_not_bridged(history: Page, complaints: Complaints) -> None:
    box = drawn(history.locator("#panel-jobs"))

    values = box.evaluate("(box) => box.pilotageData.figure.data.find((trace) => trace.name).y")
    width_min = box.evaluate("(box) => box.pilotageData.figure.layout.meta.step_s / 60")
    # The last bin may have begun after the last sample.
    gaps = [at for at, value in enumerate(values[:-1]) if value is None]

    assert 60 - width_min <= len(gaps) * width_min <= 60 + width_min
    assert gaps == list(range(gaps[0], gaps[-1] + 1))
    bridged = "(plot) => plot.data.some((trace) => trace.name && trace.connectgaps)"
    assert box.locator("[data-chart-plot]").evaluate(bridged) is False


def test_no_chart_can_be_sent_away_and_the_page_asks_its_own_server_only(
    history: Page, complaints: Complaints, live_server: LiveServer
) -> None:
    asked: list[str] = []
    history.on("request", lambda request: asked.append(request.url))
    history.reload()
    box = drawn(history.locator("#panel-jobs"))
    box.locator("[data-chart-plot]").hover()

    assert history.locator(".modebar-btn").count() == 0
    config = box.evaluate(
        "() => "
        "(({showSendToCloud, plotlyServerURL, displayModeBar}) => "
        "[showSendToCloud, plotlyServerURL, displayModeBar])"
        "(document.querySelector('#panel-jobs [data-chart-plot]')._context)"
    )
    assert config == [False, "", False]
    assert {f"{urlsplit(url).scheme}://{urlsplit(url).netloc}" for url in asked} == {
        live_server.url
    }


def test_a_chart_has_the_colours_of_the_page_and_on_paper_those_of_paper(
    history: Page, complaints: Complaints
) -> None:
    drawn(history.locator("#panel-jobs"))

    for scheme, medium, expected in (
        ("light", "screen", Scheme.LIGHT),
        ("dark", "screen", Scheme.DARK),
        ("dark", "print", Scheme.LIGHT),
    ):
        history.emulate_media(color_scheme=scheme, media=medium)  # type: ignore[arg-type]
        if medium == "print":
            history.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        history.wait_for_function(_IS_DRAWN_IN, arg=PALETTES[expected].surface)
        assert PALETTES[expected].fills["go"] in history.evaluate(_COLOURS)


def test_the_times_of_a_chart_are_those_of_the_reader(
    history: Page, complaints: Complaints
) -> None:
    box = drawn(history.locator("#panel-jobs"))
    before = box.evaluate(_FIRST_TIME)

    history.evaluate("document.documentElement.dataset.zone = 'browser'")
    history.get_by_role("link", name="1 d", exact=True).click()

    expect(box.locator("[data-chart-note]")).to_contain_text(re.compile(r"UTC\+[12]\."))
    after = drawn(box).evaluate(_FIRST_TIME)
    assert timedelta(hours=1) <= _time(after) - _time(before) <= timedelta(hours=2, minutes=10)


def test_a_report_draws_without_portal_and_network(
    history: Page,
    context: BrowserContext,
    complaints: Complaints,
    tmp_path: Path,
    pictures: Path | None,
) -> None:
    box = drawn(history.locator("#panel-jobs"))
    with history.expect_download() as download:
        box.get_by_role("link", name="HTML").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    history.wait_for_function(IS_SETTLED)

    asked: list[str] = []
    context.set_offline(True)
    report = context.new_page()
    report.on("request", lambda request: asked.append(request.url))
    faults: list[str] = []
    report.on("pageerror", lambda error: faults.append(str(error)))
    report.goto(file.as_uri())

    expect(report.get_by_role("heading", level=1)).to_have_text("Jobs by state")
    expect(report.locator(".scatterlayer .trace").first).to_be_visible()
    expect(report.locator(".legendtext").first).to_be_visible()
    expect(report.locator(".gtitle")).to_have_text("Jobs by state")
    assert (faults, asked) == ([], [file.as_uri()])
    keep_pictures(report, "history-report", pictures)
    found = Axe().run(report, options=AXE).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    report.close()
    context.set_offline(False)


def test_a_bad_range_is_told_at_its_field_without_leaving_the_page(
    history: Page, complaints: Complaints
) -> None:
    history.get_by_label("From (UTC)").fill("yesterday")
    history.get_by_role("button", name="Show").click()

    expect(history.locator("#fault-from")).to_contain_text("Write a time as")
    expect(history.locator("[data-chart]")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_unfolds(
    history: Page, complaints: Complaints, scheme: str
) -> None:
    history.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    box = drawn(history.locator("#panel-jobs"))
    box.get_by_text("Jobs by state as a table").click()
    expect(box.locator("tbody tr")).to_have_count(60)
    history.locator(".pane-choice summary").click()

    found = Axe().run(history, options=AXE).response["violations"]

    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
