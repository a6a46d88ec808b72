"""Checks of a page in the browser: accessibility by axe, no sideways scrolling; and screenshots."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.e2e.conftest import NARROW

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
#: What scripts draw.
_DRAWN = "[data-chart-plot], canvas, svg[data-width]"
#: Exchange the part of a page that is refreshed; fulfilled when it stands there.
REFRESH = """() => new Promise((resolve) => {
  const live = document.querySelector("#live");
  live.addEventListener("htmx:afterRequest", () => setTimeout(resolve, 50), {once: true});
  htmx.trigger(live, "pilotage:refresh");
})"""
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


def look(page: Page, name: str, *, pictures: Path | None = None) -> list[str]:
    """Wait until all is there, and return what is wrong at this width in both colour schemes.

    Axe reads colours and what is told of each part, which do not depend on the width.
    """
    page.wait_for_function(IS_SETTLED)
    page.evaluate(_axe())
    faults = []
    for scheme, options in (("light", AXE), ("dark", _OF_COLOURS)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for violation in page.evaluate(_RUN, [_NOT_OURS, options]):
            faults += [
                f"{name}-{scheme}: {violation['id']}: {node['html'][:200]}: "
                f"{node['failureSummary']}"
                for node in violation["nodes"]
            ]
    keep_pictures(page, name, pictures)
    return faults + too_wide(page, name)


def look_narrow(page: Page, name: str, *, pictures: Path | None = None) -> list[str]:
    """What is wrong with the page, open already, on screens of 390 and of 320 px.

    The sheets fit all else to the screen, but what scripts draw they draw by the width that they
    find when they begin: such a page is loaded once more.
    """
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    if page.locator(_DRAWN).count():
        page.reload()
        page.wait_for_function(IS_SETTLED)
    page.wait_for_function(_CHARTS_FIT)
    keep_pictures(page, name, pictures)
    faults = too_wide(page, name)
    page.set_viewport_size(NARROW | {"width": _NARROWEST})  # type: ignore[arg-type]
    page.wait_for_function(_CHARTS_FIT)
    return faults + too_wide(page, f"{name} at {_NARROWEST}")


def keep_pictures(page: Page, name: str, folder: Path | None) -> None:
    """Keep the page as it looks in both colour schemes, named by its width too."""
    if folder is None:
        return
    assert page.viewport_size is not None
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        file = folder / f"{name}-{page.viewport_size['width']}-{scheme}.png"
        page.screenshot(path=file, full_page=True)


def too_wide(page: Page, name: str) -> list[str]:
    """What is wrong if the page has to be scrolled sideways."""
    spare = page.evaluate(_TOO_WIDE)
    return [f"{name}: {spare} px too wide"] if spare > 0 else []
