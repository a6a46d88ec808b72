"""History page in the browser: zoom, legend, exports, cursor, colours, zone of the reader."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.history.palettes import PALETTES, Scheme
from tests import factories
from tests.e2e import history_data
from tests.e2e.conftest import Complaints
from tests.e2e.page_checks import AXE, IS_SETTLED, keep_pictures, look
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
    expect(box.locator("[data-line]")).to_have_text(["requested", "granted", "running", "waiting"])
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


#: Whether the cursor of a chart stands in its middle.
_IS_IN_THE_MIDDLE = """(panel) => {
  const box = document.querySelector(panel);
  const place = (name) => box.querySelector(name)?.getBoundingClientRect();
  const [cursor, area] = [place(".chart-cursor"), place(".nsewdrag")];
  return cursor && area && Math.abs(cursor.x - area.x - area.width / 2) < 8;
}"""
_LINES = "(plot) => plot.data.filter((t) => t.name && t.visible === true).map((t) => t.name)"
_SENDS = """({_context: {showSendToCloud, plotlyServerURL, displayModeBar}}) =>
  [showSendToCloud, plotlyServerURL, displayModeBar]"""


def test_a_chart_is_read_by_its_lines_cursor_and_table_and_goes_nowhere(
    history: Page, complaints: Complaints, live_server: LiveServer
) -> None:
    asked: list[str] = []
    history.on("request", lambda request: asked.append(request.url))
    history.reload()
    box, plot = (
        drawn(history.locator("#panel-jobs")),
        history.locator("#panel-jobs [data-chart-plot]"),
    )
    drawn(history.locator("#panel-pressure"))
    assert plot.evaluate(_SENDS) == [False, "", False]
    area = box.locator(".nsewdrag").bounding_box()
    assert area is not None
    history.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] / 2)
    history.wait_for_function(_IS_IN_THE_MIDDLE, arg="#panel-pressure")
    expect(box.locator(".chart-cursor")).to_be_hidden()
    expect(history.locator(".modebar-btn")).to_have_count(0)

    running = box.get_by_role("button", name="running")
    assert {"running", "done"} & {*plot.evaluate(_LINES)} == {"running"}
    running.focus()
    history.keyboard.press("Enter")
    expect(running).to_have_attribute("aria-pressed", "false")
    expect(running).to_be_focused()
    assert "running" not in plot.evaluate(_LINES)

    box.get_by_text("Jobs by state as a table").click()
    expect(box.locator("tbody tr")).to_have_count(60)
    expect(box.locator("tbody tr").first).to_contain_text("UTC")
    history.locator(".pane-choice summary").click()
    assert look(history, "history-unfolded") == []
    assert {f"{urlsplit(url).scheme}://{urlsplit(url).netloc}" for url in asked} == {
        live_server.url
    }


def test_a_chart_has_the_times_of_the_reader_and_the_colours_of_the_page_or_of_paper(
    history: Page, complaints: Complaints
) -> None:
    box = drawn(history.locator("#panel-jobs"))
    before = box.evaluate(_FIRST_TIME)

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

    history.emulate_media(media="screen")
    history.evaluate("document.documentElement.dataset.zone = 'browser'")
    history.get_by_role("link", name="1 d", exact=True).click()
    expect(box.locator("[data-chart-note]")).to_contain_text(re.compile(r"UTC\+[12]\."))
    after = drawn(box).evaluate(_FIRST_TIME)
    assert timedelta(hours=1) <= _time(after) - _time(before) <= timedelta(hours=2, minutes=10)


def test_a_report_draws_without_portal_and_network(
    page: Page, live_server: LiveServer, tmp_path: Path, pictures: Path | None
) -> None:
    client = Client()
    client.force_login(factories.people().vera)
    history_data.fill(timezone.now(), [], back=timedelta(days=1), kinds=("jobs.",))
    file = tmp_path / "report.html"
    answer = client.get("/api/v1/history/panes/jobs.html")
    file.write_bytes(b"".join(answer) if answer.streaming else answer.content)

    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(file.as_uri())

    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs by state")
    expect(page.locator(".scatterlayer .trace").first).to_be_visible()
    expect(page.locator(".legendtext").first).to_be_visible()
    expect(page.locator(".gtitle")).to_have_text("Jobs by state")
    assert (faults, asked) == ([], [file.as_uri()])
    keep_pictures(page, "history-report", pictures)
    found = Axe().run(page, options=AXE).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
