"""Endpoints of history: counts over time from round-robin archives, and panes of the history page.

A pane comes as values (JSON or CSV), as a figure for Plotly, and as a report in HTML.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import tzinfo
from typing import Any, TypedDict

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from matching.round_robin_archives import ARCHIVES
from portal.api.base import AcceptsAnything, caller, refusals
from portal.api.chosen_fields import FIELDS
from portal.api.history.shapes import HistorySerializer, PaneDataSerializer, PaneSerializer
from portal.history.figures import figure_of
from portal.history.groupings import MOST_TOP, USUAL_TOP, GroupBy
from portal.history.marks import marks_of
from portal.history.palettes import Scheme
from portal.history.pane_data import Drawn, as_json, read_pane, read_to_draw, write_csv
from portal.history.panes import Pane, find_pane, panes
from portal.history.reports import report_of
from portal.history.windows import (
    FUNCTIONS,
    RANGES,
    USUAL_POINTS,
    USUAL_RANGE,
    FigureForm,
    Window,
    WindowForm,
    window_of,
)
from wms.core.errors import Finding, InvalidInput
from wms.history.annotations import Annotations
from wms.history.frontends import readable_series
from wms.history.selectors import read_series

_ARCHIVES = [archive.name for archive in ARCHIVES]
_MAX_SERIES = 50
_WINDOW = [
    OpenApiParameter(
        "range", OpenApiTypes.STR, enum=list(RANGES), default=USUAL_RANGE,
        description="How long a time until now.",
    ),
    OpenApiParameter(
        "from", OpenApiTypes.STR,
        description="Instead of a range: ISO 8601 time or day, in UTC unless it names a zone.",
    ),
    OpenApiParameter("to", OpenApiTypes.STR, description="As `from`; now where it is not given."),
    OpenApiParameter("site", OpenApiTypes.STR, description="Of one site, where the pane has such."),
    OpenApiParameter(
        "frontend", OpenApiTypes.STR, description="Of one frontend, where the pane has such."
    ),
    OpenApiParameter(
        "group_by", OpenApiTypes.STR, enum=[each.value for each in GroupBy],
        description="A line for each of the largest and one for the rest, where the pane has it.",
    ),
    OpenApiParameter(
        "top", OpenApiTypes.INT, default=USUAL_TOP,
        description=f"How many of a grouping have a line of their own, up to {MOST_TOP}.",
    ),
    OpenApiParameter(
        "resolution", OpenApiTypes.STR, enum=["auto", *_ARCHIVES], default="auto",
        description="The archive whose bins are told; `auto` is the finest that reaches back.",
    ),
    OpenApiParameter(
        "function", OpenApiTypes.STR, enum=list(FUNCTIONS), default="avg",
        description="What figures draw of a level; files of values tell all functions.",
    ),
]  # fmt: skip
_LOOK = [
    OpenApiParameter(
        "points", OpenApiTypes.INT, default=USUAL_POINTS,
        description="At most so many points of a line are drawn, up to 1,500.",
    ),
    OpenApiParameter(
        "template", OpenApiTypes.STR, enum=[each.value for each in Scheme],
        default=Scheme.LIGHT.value, description="The colours.",
    ),
    OpenApiParameter(
        "zone", OpenApiTypes.STR, default="UTC",
        description="In whose time, such as `Europe/Zurich`.",
    ),
]  # fmt: skip


class History(APIView):
    """Counts of DAGs, jobs and pilots by state over time."""

    @extend_schema(
        summary="Read series of an archive",
        parameters=[
            OpenApiParameter(
                "series",
                OpenApiTypes.STR,
                many=True,
                required=True,
                description="Name such as `jobs.running`; may be given several times.",
            ),
            OpenApiParameter("archive", OpenApiTypes.STR, enum=_ARCHIVES, default=_ARCHIVES[0]),
        ],
        responses={200: HistorySerializer, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Answer with the bins of each series, oldest first; gaps stay gaps."""
        names = list(dict.fromkeys(request.query_params.getlist("series")))
        archive = request.query_params.get("archive", _ARCHIVES[0])
        _check(request, names, archive)
        readable = readable_series(caller(request), names)
        series = read_series(readable, archive=archive, now=timezone.now())
        body = {
            "archive": archive,
            "series": [{"name": name, "bins": series.get(name, [])} for name in names],
        }
        return Response(HistorySerializer(body).data)


class PaneList(APIView):
    """The panes of the history page."""

    @extend_schema(summary="List the panes of the history", responses=PaneSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Answer with all panes and the series behind them."""
        body = [
            {
                "name": pane.name,
                "title": pane.title,
                "unit": pane.unit,
                "kind": pane.kind,
                "has_sites": pane.has_sites,
                "has_frontends": pane.has_frontends,
                "groupings": [each.value for each in pane.groupings],
                "series": pane.series_of(),
            }
            for pane in panes().values()
        ]
        return Response(PaneSerializer(body, many=True).data)


class PaneData(APIView):
    """The values of one pane, as JSON or as a CSV file."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Export a pane of the history",
        parameters=_WINDOW,
        responses={
            (200, "application/json"): PaneDataSerializer,
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR),
            **refusals(400, 404),
        },
    )
    def get(self, request: Request, panel: str, form: str) -> HttpResponse:
        """Answer with a value for each bin of the window, oldest first; gaps stay gaps."""
        pane = find_pane(panel)
        _refuse_unknown(request, [each.name for each in _WINDOW])
        window = window_of(_window_form(request))
        _refuse_grouping(pane, window)
        drawn = read_pane(pane, window, caller(request), is_whole=True)
        answer: Any
        if form == "csv":
            answer = HttpResponse(content_type="text/csv; charset=utf-8")
            write_csv(answer, drawn)
        else:
            answer = Response(as_json(drawn))
        return _named(answer, drawn, form)


class PaneFigure(APIView):
    """The figure of one pane, for Plotly."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Take the figure of a pane",
        parameters=[*_WINDOW, *_LOOK],
        responses={
            (200, "application/json"): OpenApiResponse(
                OpenApiTypes.OBJECT, description="As `plotly.io.from_json` reads it."
            ),
            **refusals(400, 404),
        },
    )
    def get(self, request: Request, panel: str) -> HttpResponse:
        """Answer with what the page draws, in the asked colours and time."""
        drawn, marks, style = _drawing(request, panel)
        figure = figure_of(drawn, marks.shown, **style)
        answer = HttpResponse(figure.to_json(), content_type="application/json")
        return _named(answer, drawn, "figure.json")


class PaneReport(APIView):
    """The figure of one pane as a page that draws by itself."""

    content_negotiation_class = AcceptsAnything

    @extend_schema(
        summary="Take the figure of a pane as an HTML file",
        parameters=[*_WINDOW, *_LOOK],
        responses={
            (200, "text/html"): OpenApiResponse(OpenApiTypes.STR),
            **refusals(400, 404),
        },
    )
    def get(self, request: Request, panel: str) -> HttpResponse:
        """Answer with the figure, its sentence, what is marked, and the library that draws it."""
        drawn, marks, style = _drawing(request, panel)
        return _named(HttpResponse(report_of(drawn, marks, **style)), drawn, "html")


class _FigureStyle(TypedDict):
    """Style of a figure."""

    scheme: Scheme
    zone: tzinfo


def _drawing(request: Request, panel: str) -> tuple[Drawn, Annotations, _FigureStyle]:
    """Pane, window and style of the request. Raises NotFound, InvalidInput."""
    pane = find_pane(panel)
    _refuse_unknown(request, [each.name for each in (*_WINDOW, *_LOOK)])
    form = FigureForm(request.query_params, now=timezone.now(), user=caller(request))
    window = window_of(form)
    _refuse_grouping(pane, window)
    drawn = read_to_draw(pane, window, caller(request))
    style = _FigureStyle(scheme=form.cleaned_data["template"], zone=form.cleaned_data["zone"])
    return drawn, marks_of(drawn, request.user), style


def _window_form(request: Request) -> WindowForm:
    return WindowForm(request.query_params, now=timezone.now(), user=caller(request))


def _refuse_grouping(pane: Pane, window: Window) -> None:
    if window.group_by is None or pane.grouping(window.group_by):
        return
    known = ", ".join(pane.groupings) or "nothing"
    text = f"the pane {pane.name} is not told by {window.group_by}, but by {known}"
    raise InvalidInput([Finding(text, field="group_by")])


def _named(answer: HttpResponse, drawn: Drawn, form: str) -> HttpResponse:
    """The answer as a file whose name tells what is in it."""
    answer["Content-Disposition"] = f'attachment; filename="{drawn.file_stem}.{form}"'
    return answer


def _unknown(request: Request, known: Collection[str]) -> list[Finding]:
    return [
        Finding(f"unknown; known are {', '.join(sorted(known))}", field=name)
        for name in sorted(set(request.query_params) - set(known) - {FIELDS})
    ]


def _refuse_unknown(request: Request, known: Collection[str]) -> None:
    if findings := _unknown(request, known):
        raise InvalidInput(findings)


def _check(request: Request, names: list[str], archive: str) -> None:
    findings = _unknown(request, ["archive", "series"])
    if not 1 <= len(names) <= _MAX_SERIES:
        findings.append(Finding(f"name 1 to {_MAX_SERIES} series", field="series"))
    if any("\0" in name for name in names):
        findings.append(Finding("contains a null character", field="series"))
    if archive not in _ARCHIVES:
        findings.append(Finding(f"must be one of {', '.join(_ARCHIVES)}", field="archive"))
    if findings:
        raise InvalidInput(findings)
