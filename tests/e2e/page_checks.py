"""Checks of a page in the browser: axe, screenshots, no sideways scrolling."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Page

SHOTS = Path(settings.BASE_DIR, "var", "screenshots")
_WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
AXE: dict[str, Any] = {
    "runOnly": {"type": "tag", "values": _WCAG},
    "resultTypes": ["violations"],
    # Else it asks for what sheets import, by addresses that there are not.
    "preload": False,
}
#: The narrowest screen that a page has to fit.
_NARROWEST = 320

#: Fonts are there, charts are drawn, parts that are loaded later have come.
IS_SETTLED = """() => document.fonts.status === "loaded"
    && document.querySelectorAll(".htmx-request, .asking").length === 0
    && [...document.querySelectorAll("[data-chart-plot]")].every((plot) => plot.firstChild)"""
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: Charts are drawn anew some time after the screen has become another.
_CHARTS_FIT = """() => [...document.querySelectorAll("[data-chart-plot]")].every(
    (plot) => (plot.querySelector(".main-svg")?.clientWidth ?? 0) <= plot.clientWidth)"""
#: The hint that Django's own script puts beside its lists of two columns is not ours to mend.
_NOT_OURS = [[".selector .help-tooltip"]]
_RUN = "async ([exclude, options]) => (await axe.run({exclude}, options)).violations"
#: What axe finds by colours; all else is the same in both schemes.
_OF_COLOURS: dict[str, Any] = AXE | {
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
}


@cache
def _axe() -> str:
    return str(Axe().axe_script)


def look(page: Page, name: str, *, with_axe: bool = True) -> list[str]:
    """Wait until all is there, keep pictures in both schemes, and return what is wrong.

    Axe reads colours and what is told of each part, which do not depend on the width.
    """
    page.wait_for_function(IS_SETTLED)
    SHOTS.mkdir(parents=True, exist_ok=True)
    if with_axe:
        page.evaluate(_axe())
    faults = []
    for scheme, options in (("light", AXE), ("dark", _OF_COLOURS)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.screenshot(path=SHOTS / f"{name}-{scheme}.png", full_page=True)
        for violation in page.evaluate(_RUN, [_NOT_OURS, options]) if with_axe else ():
            faults += [
                f"{name}-{scheme}: {violation['id']}: {node['html'][:200]}: "
                f"{node['failureSummary']}"
                for node in violation["nodes"]
            ]
    return faults + too_wide(page, name)


def too_wide(page: Page, name: str) -> list[str]:
    """What is wrong if the page has to be scrolled sideways."""
    spare = page.evaluate(_TOO_WIDE)
    return [f"{name}: {spare} px too wide"] if spare > 0 else []


def fits_the_narrowest(page: Page, name: str) -> list[str]:
    """The same on a screen of 320 px."""
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": _NARROWEST, "height": size["height"]})
    page.wait_for_function(_CHARTS_FIT)
    faults = too_wide(page, f"{name} at {_NARROWEST}")
    page.set_viewport_size(size)
    return faults
