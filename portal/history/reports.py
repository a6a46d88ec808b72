"""Report of a history pane: one HTML file with its figure that needs neither portal nor network."""

from __future__ import annotations

from datetime import UTC, tzinfo
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from portal.history.captions import sentence_of
from portal.history.clocks import Clock
from portal.history.figures import figure_of
from portal.history.palettes import PALETTES, Scheme
from portal.history.pane_data import Drawn
from wms.history.annotations import Annotations

#: The pages' own bundle: it draws all that figures have, in a quarter of the bytes of the whole.
_LIBRARY = "vendor/plotly/plotly-basic.min.js"
_CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "showSendToCloud": False,
    "plotlyServerURL": "",
}


def report_of(drawn: Drawn, marks: Annotations, *, scheme: Scheme, zone: tzinfo = UTC) -> str:
    """HTML file with the figure, its caption and its marks."""
    clock = Clock.of(zone, drawn.window)
    figure = figure_of(drawn, marks.shown, scheme=scheme, zone=zone)
    # Plotly escapes what could end its script.
    drawing = figure.to_html(config=_CONFIG, include_plotlyjs=False, full_html=False)
    context = {
        "drawn": drawn,
        "palette": PALETTES[scheme],
        "scheme": scheme.value,
        "since": clock.told(drawn.window.since.timestamp()),
        "until": clock.told(drawn.window.until.timestamp()),
        "made": clock.told(drawn.window.now.timestamp()),
        "summary": sentence_of(drawn),
        "marks": [
            (clock.told(mark.at.timestamp()),
             mark.until and clock.told(mark.until.timestamp()),
             mark.words)
            for mark in marks.shown
        ],
        "library": mark_safe(_library()),
        "drawing": mark_safe(drawing),
    }  # fmt: skip
    return render_to_string("history/report.html", context)


def _library() -> str:
    """The text of the chart library."""
    path = finders.find(_LIBRARY)
    if path is None:
        raise FileNotFoundError(_LIBRARY)
    return Path(path).read_text(encoding="utf-8")
