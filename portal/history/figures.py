"""Plotly figure of a history pane, for page, API, notebook and report: data, layout, colours.

Plotly is imported where the first figure is made: it takes some 30 MB and 0.1 s, which processes
that draw nothing save.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portal.history.captions import legend_of
from portal.history.clocks import Clock
from portal.history.groupings import REST
from portal.history.marks import flags_of, shapes_of
from portal.history.palettes import FONT, PALETTES, Palette, Scheme, faded
from portal.history.pane_data import Column, Drawn, DrawnLine, stamp
from portal.history.panes import PaneKind
from portal.shared.state_badges import BADGES, badge_of
from wms.history.annotations import Annotation

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Lines of like tones and dashes still have other markers: 6 and 6 meet after 36 lines.
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
#: Lines that are no states, beside which they would have the same tone, or have one by their place.
_OWN_TONES = {"requested": "wait", "granted": "next", "submitted": "next", "started": "go"}
_TONES = ("go", "good", "warn", "next", "bad", "wait", "off")
#: Times on the axis are written as on the pages: the day stands below the first hour of it.
_TICKS = [
    {"dtickrange": [None, 60_000], "value": "%H:%M:%S\n%Y-%m-%d"},
    {"dtickrange": [60_000, 86_400_000], "value": "%H:%M\n%Y-%m-%d"},
    {"dtickrange": [86_400_000, "M1"], "value": "%-d %b\n%Y"},
    {"dtickrange": ["M1", "M12"], "value": "%b\n%Y"},
    {"dtickrange": ["M12", None], "value": "%Y"},
]
#: A point stands for about two pixels; nobody sees a figure in more than that.
_PX_OF_POINT, _MOST_PX = 2, 1000
_NARROW_PX = 500
_BAND, _FIELD, _STACK = 0.22, 0.14, 0.5
_MOST_STRETCHES = 12
#: Fields of equal tones differ by their patterns, for those who see no colours, too.
_PATTERNS = ("", "/", "x", ".")
#: A fitted figure shows so many bins at least.
_FEWEST_BINS = 10


class TraceStyle(StrEnum):
    """Look of a trace: a line, the band from a mean to its maximum, or a layer of a stack."""

    LINE = "line"
    BAND = "band"
    LAYER = "layer"


Styles = tuple[tuple[str, TraceStyle], ...]


def figure_of(
    drawn: Drawn,
    marks: Sequence[Annotation],
    *,
    scheme: Scheme = Scheme.LIGHT,
    zone: tzinfo = UTC,
    is_fitted: bool = False,
) -> Figure:
    """Plotly figure of a pane, complete in itself.

    A line is a trace, with gaps where there is no value; before a mean comes the band up to its
    maximum. Both have the line's name as `legendgroup`. Colours come from the template alone, so
    that another template changes all of them. `layout.meta` describes the data. A fitted figure
    begins with its first value instead of the window.
    """
    from plotly import graph_objects

    plain = figure_json(drawn, marks, zone=zone, is_fitted=is_fitted)
    plain["layout"]["template"] = template_of(scheme, styles_of(drawn))
    # Every value of a long trace would be looked at, for three times as long as all else takes;
    # the tests validate the figure of each pane instead.
    return graph_objects.Figure(_validate=False, **plain)


def figure_json(
    drawn: Drawn,
    marks: Sequence[Annotation],
    *,
    zone: tzinfo = UTC,
    is_fitted: bool = False,
) -> dict[str, Any]:
    """Data and layout of the figure of a pane, as in Plotly's JSON, without a template.

    A `Figure` copies all values when it is made, and again when it is written: the page does
    without.
    """
    clock = Clock.of(zone, drawn.window)
    return {
        "data": list(_traces(drawn, clock)),
        "layout": _layout(drawn, marks, clock, is_fitted=is_fitted),
    }


def styles_of(drawn: Drawn) -> Styles:
    """Tone of each trace of the figure, and its look."""
    if drawn.is_stacked:
        layers = ((_tone_of_layer(line, at), TraceStyle.LAYER) for at, line in drawn.shown)
        return tuple(layers) * len(_stretches(drawn))
    return tuple(
        (tone_of(line, place), look)
        for place, line in drawn.shown
        for look in ((TraceStyle.BAND, TraceStyle.LINE) if _has_band(line) else (TraceStyle.LINE,))
    )


def _tone_of_layer(line: DrawnLine, place: int) -> str:
    """Tones of groups go by their places alone: a site may be called as a state."""
    if line.line.name == REST:
        return "off"
    tones = _TONES[:-1]
    return tones[place % len(tones)]


def tone_of(line: DrawnLine, place: int) -> str:
    """Tone of the state that a line shows, or one by its position."""
    name = line.line.name
    if name in BADGES:
        return badge_of(name).tone
    return _OWN_TONES.get(name) or _TONES[place % len(_TONES)]


@lru_cache(maxsize=128)
def template_of(scheme: Scheme, styles: Styles) -> Mapping[str, Any]:
    """Plotly template of a scheme for traces of these styles: all of their colours."""
    palette = PALETTES[scheme]
    axis = {
        "gridcolor": palette.line, "linecolor": palette.line_strong,
        "tickcolor": palette.line_strong, "zeroline": False,
    }  # fmt: skip
    label = {
        "bgcolor": palette.raised, "bordercolor": palette.line_strong,
        "font": {"color": palette.ink},
    }  # fmt: skip
    return {
        "data": {"scatter": [_style(palette, *style) for style in styles]},
        "layout": {
            "paper_bgcolor": palette.surface,
            "plot_bgcolor": palette.surface,
            "font": {"family": FONT, "size": 12, "color": palette.ink_2},
            "title": {"font": {"size": 15, "color": palette.ink}},
            "hoverlabel": label,
            "xaxis": axis,
            "yaxis": axis,
            "shapedefaults": {
                "line": {"color": palette.ink_3},
                "fillcolor": faded(palette.fills["warn"], _FIELD),
            },
            "annotationdefaults": {
                "font": {"size": 10, "color": palette.ink_2}, "bgcolor": palette.surface,
                "bordercolor": palette.line_strong, "hoverlabel": label,
            },
        },
    }  # fmt: skip


def _style(palette: Palette, tone: str, look: TraceStyle) -> dict[str, Any]:
    colour = palette.fills[tone]
    if look == TraceStyle.BAND:
        return {"fillcolor": faded(colour, _BAND)}
    if look == TraceStyle.LAYER:
        fill = {"fillcolor": faded(colour, _STACK), "fillpattern": {"fgcolor": palette.ink_3}}
        return {"line": {"color": colour}, "marker": {"color": colour}, **fill}
    return {"line": {"color": colour}, "marker": {"color": colour}}


def _has_band(line: DrawnLine) -> bool:
    return len(line.columns) > 1


def _traces(drawn: Drawn, clock: Clock) -> Iterator[Any]:
    times = clock.all_written(drawn.starts) if any(map(_has_band, drawn.lines)) else []
    if drawn.is_stacked:
        yield from _layers(drawn, clock)
        return
    for place, line in drawn.shown:
        state = {
            "type": "scatter",
            "legendgroup": line.line.name,
            "visible": "legendonly" if line.line.is_folded else True,
        }
        value, *rest = line.columns.values()
        if rest:
            x, y = _band(times, value, rest[0])
            yield state | {
                "x": x, "y": y, "mode": "lines", "fill": "toself", "line": {"width": 0},
                "hoverinfo": "skip", "showlegend": False,
            }  # fmt: skip
        yield state | _line(drawn, clock, line, place)


def _layers(drawn: Drawn, clock: Clock) -> Iterator[dict[str, Any]]:
    """Layers of a stack for each stretch without a gap: within a stack, gaps would be zeros."""
    for number, stretch in enumerate(_stretches(drawn)):
        for place, line in drawn.shown:
            layer = _line(drawn, clock, line, place)
            shape = (
                "."
                if line.line.name == REST
                else _PATTERNS[place // (len(_TONES) - 1) % len(_PATTERNS)]
            )
            yield layer | {
                "type": "scatter",
                "legendgroup": line.line.name,
                "visible": True,
                "showlegend": not number,
                "stackgroup": f"stretch-{number}",
                "fillpattern": {"shape": shape, "size": 6, "fillmode": "overlay"},
                "x0": clock.written(drawn.starts[stretch.start]),
                "y": layer["y"][stretch.start : stretch.stop],
            }


def _stretches(drawn: Drawn) -> list[range]:
    """Stretches of bins in which a line has a value; of many gaps the last ones are not told."""
    columns = [next(iter(line.columns.values())) for _, line in drawn.shown]
    known = [any(value is not None for value in values) for values in zip(*columns, strict=True)]
    starts = [at for at, is_known in enumerate(known) if is_known and not (at and known[at - 1])]
    gaps = [at for at, is_known in enumerate([*known, False]) if not is_known]
    ends = [at for at in gaps if at and known[at - 1]]
    if len(starts) > _MOST_STRETCHES:
        starts, ends = starts[:_MOST_STRETCHES], [*ends[: _MOST_STRETCHES - 1], ends[-1]]
    return [range(*each) for each in zip(starts, ends, strict=True)]


def _line(drawn: Drawn, clock: Clock, line: DrawnLine, place: int) -> dict[str, Any]:
    value, *rest = line.columns.values()
    unit = {"s": " s", "%": " %"}.get(drawn.pane.unit, "")
    trace: dict[str, Any] = {
        "x0": clock.written(drawn.starts[0]),
        "dx": 1000 * drawn.resolution.step_s,
        "y": value,
        "name": line.line.label,
        "mode": "lines+markers",
        "connectgaps": False,
        "line": {
            "width": 1.75,
            "dash": _DASHES[place % len(_DASHES)],
            "shape": "hvh" if drawn.pane.kind == PaneKind.COUNT else "linear",
        },
        "marker": {
            "symbol": _SYMBOLS[(place + place // len(_DASHES)) % len(_SYMBOLS)],
            "size": 6.5,
            "maxdisplayed": 12,
        },
        "hovertemplate": f"%{{y:,.4~g}}{unit}",
    }
    if rest:
        trace["customdata"] = rest[0]
        trace["hovertemplate"] += f", max %{{customdata:,.4~g}}{unit}"
    return trace


def _band(
    times: Sequence[str], low: Column, high: Column
) -> tuple[list[str | None], list[float | None]]:
    """One closed outline for each stretch without a gap: fills between lines would bridge gaps."""
    x: list[str | None] = []
    y: list[float | None] = []
    start = 0
    for at in range(len(low) + 1):
        if at < len(low) and low[at] is not None:
            continue
        if at > start:
            if x:
                x.append(None)
                y.append(None)
            x += [*times[start:at], *reversed(times[start:at])]
            y += [*high[start:at], *reversed(low[start:at])]
        start = at + 1
    return x, y


def _layout(
    drawn: Drawn, marks: Sequence[Annotation], clock: Clock, *, is_fitted: bool
) -> dict[str, Any]:
    pane, window = drawn.pane, drawn.window
    width_px = min(_PX_OF_POINT * window.points, _MOST_PX)
    is_narrow = width_px <= _NARROW_PX
    peaks = [each.high for _, each in drawn.shown]
    peak = sum(peaks) if drawn.is_stacked else max(peaks, default=0)
    legend, names = legend_of(drawn), clock.names_in(window)
    stack = ", stacked: the top is the sum" if drawn.is_stacked else ""
    return {
        "title": {
            "text": f"{drawn.title}{drawn.part.words}",
            "subtitle": {"text": f"{legend[0].upper()}{legend[1:]}, {pane.unit}, {names}{stack}"},
        },
        "margin": {"l": 56, "r": 20, "t": 80, "b": 44},
        "showlegend": True,
        "hovermode": "x unified",
        "dragmode": False if is_narrow else "zoom",
        # What a reader has zoomed into stays while the same bins are drawn anew.
        "uirevision": f"{window.since:%Y-%m-%d}/{drawn.resolution.step_s}",
        "xaxis": {
            "type": "date",
            "range": [
                clock.written(each)
                for each in (_start_s(drawn, is_fitted=is_fitted), window.until.timestamp())
            ],
            "hoverformat": f"%Y-%m-%d %H:%M {clock.name}",
            "tickangle": 0,
            "nticks": 4 if is_narrow else 8,
            "tickformatstops": _TICKS,
            **_ticks(drawn, clock, 4 if is_narrow else 8),
        },
        "yaxis": {
            "rangemode": "tozero", "tickformat": "~g" if peak < 10 else "~s",
            "fixedrange": True, "nticks": 6,
        },
        "shapes": shapes_of(marks, clock),
        "annotations": flags_of(marks, clock, window, width_px),
        "meta": _meta(drawn, clock),
    }  # fmt: skip


def _ticks(drawn: Drawn, clock: Clock, most: int) -> dict[str, Any]:
    """Ticks in the offsets of their instants, where the window has more than one."""
    if not clock.changes_in(drawn.window):
        return {}
    ticks = clock.ticks(drawn.window, most)
    return {
        "tickmode": "array",
        "tickvals": clock.all_written(each.at_s for each in ticks),
        "ticktext": [each.text for each in ticks],
    }


def _meta(drawn: Drawn, clock: Clock) -> dict[str, Any]:
    """Description of the data for programs. Times of the figure are `offset_s` later than UTC."""
    window = drawn.window
    return {
        "pane": drawn.pane.name,
        "title": drawn.title,
        "unit": drawn.pane.unit,
        "kind": drawn.pane.kind.value,
        "site": drawn.part.site,
        "frontend": drawn.part.frontend,
        "group_by": (window.group_by or "") if drawn.grouping else "",
        "from": stamp(window.since.timestamp()),
        "to": stamp(window.until.timestamp()),
        "archive": drawn.resolution.archive.name,
        "step_s": drawn.resolution.step_s,
        "bins": len(drawn.starts),
        "first": stamp(drawn.starts[0]) if drawn.starts else None,
        "function": legend_of(drawn),
        "zone": clock.name,
        "offset_s": clock.offset_s,
        "file": drawn.file_stem,
    }


def _start_s(drawn: Drawn, *, is_fitted: bool) -> float:
    """Beginning of the axis: of days also what of the first one is before the window."""
    if is_fitted:
        return _fitted_start(drawn)
    since_s = drawn.window.since.timestamp()
    return min([since_s, *drawn.starts[:1]]) if drawn.pane.is_of_accounts else since_s


def _fitted_start(drawn: Drawn) -> float:
    """Time of the first value, so that one hour of data is not drawn as an empty day."""
    window, step_s = drawn.window, drawn.resolution.step_s
    end_s = window.until.timestamp()
    firsts = (each.first_bin for _, each in drawn.shown)
    first = min((each for each in firsts if each is not None), default=None)
    oldest_s = end_s if first is None else drawn.starts[first]
    return max(min(oldest_s, end_s - _FEWEST_BINS * step_s), window.since.timestamp())
