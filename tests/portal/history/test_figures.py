"""Figures without a database: traces, gaps, axes, units, marks, colours, clocks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from plotly import io
from plotly.graph_objects import Figure, Scatter
from plotly.offline import get_plotlyjs_version

from matching.round_robin_archives import Resolution, archive_named
from portal.history.clocks import Clock
from portal.history.figures import figure_json, figure_of
from portal.history.palettes import PALETTES, Scheme
from portal.history.pane_data import Column, Drawn, DrawnLine
from portal.history.panes import PaneLine, find_pane
from portal.history.windows import Window
from wms.history.annotations import Annotation

HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(since=NOON, until=NOON + 5 * HOUR, now=NOON + 5 * HOUR, points=300)
MEAN: Mapping[str, Column] = {"avg": [1, 2, None, 4, 3], "max": [2, 2, None, 6, 5]}


def drawn(pane: str = "jobs", window: Window = WINDOW, **columns: Mapping[str, Column]) -> Drawn:
    """The pane with these lines, in hours from noon."""
    lines = [
        DrawnLine(
            next(line for line in find_pane(pane).lines if line.name == name),
            values, 0, max(each for column in values.values() for each in column if each),
        )
        for name, values in columns.items()
    ]  # fmt: skip
    starts = range(int(NOON.timestamp()), int(NOON.timestamp()) + 5 * 3600, 3600)
    return Drawn(find_pane(pane), window, Resolution(archive_named("1h")), starts, lines)


def made(*args: Any, **options: Any) -> Figure:
    """The figure as a notebook reads it, which looks at every value."""
    return io.from_json(figure_of(*args, **options).to_json())


def named(figure: Figure) -> list[Scatter]:
    return [trace for trace in figure.data if trace.name]


def test_a_mean_is_a_line_with_a_band_up_to_its_maximum() -> None:
    figure = made(drawn(running=MEAN), [])

    band, line = figure.data
    assert (line.name, line.y, line.customdata) == (
        "running", (1, 2, None, 4, 3), (2, 2, None, 6, 5)
    )  # fmt: skip
    assert (line.x0, line.dx) == ("2026-11-20 12:00:00", 3_600_000)
    assert (band.legendgroup, band.fill, band.showlegend) == ("running", "toself", False)
    assert line.legendgroup == "running"


def test_gaps_are_not_bridged_by_line_or_band() -> None:
    band, line = made(drawn(running=MEAN), []).data

    assert line.connectgaps is False
    assert band.y == (2, 2, 2, 1, None, 6, 5, 3, 4)
    assert [each and each[11:13] for each in band.x] == [
        "12", "13", "13", "12", None, "15", "16", "16", "15",
    ]  # fmt: skip


def test_a_single_function_has_no_band_and_counts_are_drawn_as_steps() -> None:
    figure = made(drawn("throughput", done={"sum": [0, 4, None, 2, 2]}), [])

    (line,) = figure.data
    assert line.line.shape == "hvh"
    assert line.hovertemplate == "%{y:,.4~g}"


def test_units_stand_in_words_and_for_programs() -> None:
    figure = made(drawn("waiting", median={"value": [3, 4, None, 5, 900]}), [])

    assert figure.layout.title.subtitle.text.endswith(", s, UTC")
    assert figure.data[0].hovertemplate.endswith(" s")
    meta = figure.layout.meta
    assert (meta["pane"], meta["unit"], meta["kind"]) == ("waiting", "s", "spread")
    assert (meta["from"], meta["to"]) == ("2026-11-20T12:00:00Z", "2026-11-20T17:00:00Z")
    assert (meta["step_s"], meta["bins"], meta["archive"]) == (3600, 5, "1h")


def test_the_axes_are_times_of_the_window_and_values_from_zero() -> None:
    layout = made(drawn(running=MEAN), []).layout

    assert layout.xaxis.type == "date"
    assert layout.xaxis.range == ("2026-11-20 12:00:00", "2026-11-20 17:00:00")
    assert (layout.yaxis.rangemode, layout.yaxis.tickformat) == ("tozero", "~g")
    assert made(drawn(running={"avg": [900] * 5}), []).layout.yaxis.tickformat == "~s"


def test_a_fitted_figure_begins_with_its_first_value_but_shows_ten_bins() -> None:
    late = {"avg": [None, None, None, None, 4]}
    long = replace(WINDOW, since=NOON - 24 * HOUR)

    assert made(drawn(window=long, running=MEAN), [], is_fitted=True).layout.xaxis.range == (
        "2026-11-20 07:00:00", "2026-11-20 17:00:00",
    )  # fmt: skip
    assert made(drawn(running=late), [], is_fitted=True).layout.xaxis.range[0] == (
        "2026-11-20 12:00:00"
    )


def test_a_folded_line_waits_in_the_legend_with_its_band() -> None:
    figure = made(drawn(running=MEAN, done=MEAN), [])

    assert [(each.legendgroup, each.visible) for each in figure.data] == [
        ("running", True), ("running", True), ("done", "legendonly"), ("done", "legendonly"),
    ]  # fmt: skip


def test_lines_differ_by_dash_or_marker_without_colours() -> None:
    line = find_pane("jobs").lines[0]
    many = [
        DrawnLine(replace(line, name=f"l{n}"), {"avg": [1, 2, 3, 4, 5]}, 1, 5) for n in range(36)
    ]

    figure = made(replace(drawn(), lines=many), [])

    looks = {(each.line.dash, each.marker.symbol) for each in figure.data}
    assert len(looks) == 36


@pytest.mark.parametrize("scheme", Scheme)
def test_all_colours_are_those_of_the_template(scheme: Scheme) -> None:
    marks = [Annotation("downtime", NOON + HOUR, NOON + 2 * HOUR, "UW: down")]
    figure = figure_of(drawn(running=MEAN), marks, scheme=scheme).to_plotly_json()
    template = figure["layout"].pop("template")

    assert not re.search(r"#[0-9a-f]{6}|rgb", str(figure))
    fills = PALETTES[scheme].fills
    band, line = template["data"]["scatter"]
    assert line["line"]["color"] == line["marker"]["color"] == fills["go"]
    assert band["fillcolor"].startswith("rgba(")
    assert template["layout"]["paper_bgcolor"] == PALETTES[scheme].surface


@pytest.mark.parametrize("scheme", Scheme)
def test_figures_have_the_colours_of_the_pages(scheme: Scheme) -> None:
    sheet = Path(settings.BASE_DIR, "static", "css", "tokens.css").read_text()
    light, dark = sheet.split('[data-bs-theme="dark"] {', 1)
    tokens = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark if scheme == "dark" else light))
    palette = PALETTES[scheme]

    for name in ("surface", "raised", "line", "line_strong", "ink", "ink_2", "ink_3"):
        assert getattr(palette, name) == tokens[name.replace("_", "-")], name
    assert dict(palette.fills) == {tone: tokens[f"{tone}-fill"] for tone in palette.fills}


def _marks(*hours: float) -> Sequence[Annotation]:
    return [Annotation("state", NOON + each * HOUR, None, f"UW: {each} <b>") for each in hours]


def test_marks_are_lines_and_fields_with_numbered_flags() -> None:
    lasting = Annotation("downtime", NOON - HOUR, NOON + 2 * HOUR, "UW: down")

    layout = made(drawn(running=MEAN), [lasting, *_marks(3)]).layout

    field, line = layout.shapes
    assert (field.type, field.x0, field.x1) == (
        "rect", "2026-11-20 11:00:00", "2026-11-20 14:00:00"
    )  # fmt: skip
    assert (line.type, line.x0, line.x1) == ("line", "2026-11-20 15:00:00", "2026-11-20 15:00:00")
    assert [(flag.text, flag.x) for flag in layout.annotations] == [
        ("1", "2026-11-20 12:00:00"), ("2", "2026-11-20 15:00:00"),
    ]  # fmt: skip
    assert layout.annotations[1].hovertext == "UW: 3 &lt;b>"


def test_marks_side_by_side_share_a_flag() -> None:
    layout = made(drawn(running=MEAN), _marks(1, 1.01, 1.02, 3)).layout

    assert [flag.text for flag in layout.annotations] == ["1\N{EN DASH}3", "4"]
    assert len(layout.shapes) == 4


def test_a_narrow_figure_leaves_the_finger_to_the_page() -> None:
    narrow = made(drawn(window=replace(WINDOW, points=150), running=MEAN), []).layout

    assert (narrow.dragmode, narrow.xaxis.nticks) == (False, 4)
    assert made(drawn(running=MEAN), []).layout.dragmode == "zoom"


@pytest.mark.parametrize(
    ("zone", "name", "noon"),
    [
        ("UTC", "UTC", "12:00"),
        ("Europe/Zurich", "UTC+1", "13:00"),
        ("America/St_Johns", "UTC-3:30", "08:30"),
    ],
)
def test_times_are_those_of_the_zone_and_say_so(zone: str, name: str, noon: str) -> None:
    figure = made(drawn(running=MEAN), _marks(0), zone=ZoneInfo(zone))

    assert figure.data[1].x0[11:16] == figure.data[0].x[0][11:16] == noon
    assert figure.layout.xaxis.range[0][11:16] == noon
    assert figure.layout.shapes[0].x0[11:16] == noon
    assert figure.layout.xaxis.hoverformat.endswith(f" {name}")
    assert figure.layout.title.subtitle.text.endswith(f", {name}")
    assert figure.layout.meta["zone"] == name
    assert Clock(figure.layout.meta["offset_s"]).written(NOON.timestamp())[11:16] == noon


@pytest.mark.parametrize(
    ("day", "told", "subtitle"),
    [
        # Summer ends: two o'clock in the night comes twice.
        (datetime(2026, 10, 25, tzinfo=UTC), ["02:00", "02:00", "03:00"], "UTC+2, then UTC+1"),
        # Summer begins: there is no two o'clock.
        (datetime(2026, 3, 29, tzinfo=UTC), ["01:00", "03:00", "04:00"], "UTC+1, then UTC+2"),
    ],
)
def test_each_instant_has_its_own_offset_where_clocks_change(
    day: datetime, told: list[str], subtitle: str
) -> None:
    window = Window(since=day, until=day + 3 * HOUR, now=day + 3 * HOUR, points=150)
    clock = Clock.of(ZoneInfo("Europe/Berlin"), window)

    axis = made(drawn(window=window, running=MEAN), [], zone=ZoneInfo("Europe/Berlin")).layout

    assert [each[:5] for each in axis.xaxis.ticktext] == told
    hours = [datetime.fromisoformat(each) for each in axis.xaxis.tickvals]
    assert {after - before for before, after in pairwise(hours)} == {HOUR}
    assert axis.title.subtitle.text.endswith(f", {subtitle}")
    assert clock.told(day.timestamp())[11:].endswith(subtitle[:5])
    assert clock.told((day + 2 * HOUR).timestamp())[11:].endswith(subtitle[-5:])


def test_ticks_of_long_windows_are_midnights_of_their_days() -> None:
    until = datetime(2026, 11, 1, tzinfo=UTC)
    for length in (timedelta(days=8), timedelta(days=30), timedelta(days=365)):
        window = Window(since=until - length, until=until, now=until)
        ticks = Clock.of(ZoneInfo("Europe/Berlin"), window).ticks(window, 8)

        assert 3 <= len(ticks) <= 9
        local = [datetime.fromtimestamp(each.at_s, ZoneInfo("Europe/Berlin")) for each in ticks]
        assert {(each.hour, each.minute) for each in local} == {(0, 0)}


def test_a_pane_without_values_is_an_empty_figure() -> None:
    figure = made(drawn(), [])

    assert figure.data == ()
    assert figure.layout.meta["unit"] == "jobs"


def test_the_line_of_a_state_has_the_tone_of_the_state_and_others_one_by_their_place() -> None:
    other = PaneLine("cats", "cats", "cats")
    lines = [DrawnLine(other, {"avg": [1]}, 1, 1)] * 2

    figure = figure_of(replace(drawn(), lines=lines), []).to_plotly_json()

    fills = PALETTES[Scheme.LIGHT].fills
    styles = figure["layout"]["template"]["data"]["scatter"]
    assert [each["line"]["color"] for each in styles] == [fills["go"], fills["good"]]


def test_the_page_draws_the_figure_of_api_and_report() -> None:
    of_page = figure_json(drawn(running=MEAN), [])

    of_api = figure_of(drawn(running=MEAN), []).to_plotly_json()

    del of_api["layout"]["template"]
    assert json.loads(json.dumps(of_page)) == json.loads(json.dumps(of_api))


def test_the_library_of_the_pages_is_that_of_the_package() -> None:
    vendored = Path(settings.BASE_DIR, "static", "vendor", "plotly", "plotly-basic.min.js")

    assert f"v{get_plotlyjs_version()}\n" in vendored.read_text(encoding="utf-8")[:200]
