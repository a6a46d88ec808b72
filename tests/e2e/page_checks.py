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
_COLOUR_RULES = ("color-contrast", "link-in-text-block")
_OF_COLOURS: dict[str, Any] = AXE | {"runOnly": {"type": "rule", "values": [*_COLOUR_RULES]}}
_BUT_COLOURS: dict[str, Any] = AXE | {"rules": {rule: {"enabled": False} for rule in _COLOUR_RULES}}
#: Pages on which the menu and the dialog of keys are looked at too; they are the same everywhere.
_WITH_FRAME = {"dashboard", "admin"}
_FRAME = [[".rail"], ["#keys-dialog"]]
#: Rows of a table are made alike.
_MORE_OF_THE_SAME = [["tbody tr:nth-child(n+9)"]]
#: Marks each text that looks like none before: by tags, classes and colours from the root to it.
_MARK_NEW = """(seen) => {
  const known = new Set(seen), fresh = [], looks = new Map([[null, 7]]);
  const mixed = (text, hash) => {
    let mix = hash;
    for (let at = 0; at < text.length; at += 1) mix = (31 * mix + text.charCodeAt(at)) | 0;
    return mix;
  };
  const lookOf = (element) => {
    if (!looks.has(element)) {
      const style = getComputedStyle(element);
      const own = [element.localName, element.getAttribute("class"), style.color,
        style.backgroundColor, style.backgroundImage, style.opacity, style.fontSize,
        style.fontWeight].join();
      looks.set(element, mixed(own, lookOf(element.parentElement)));
    }
    return looks.get(element);
  };
  const hasText = (element) => element.matches("input, select, textarea")
    || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  for (const element of document.body.querySelectorAll("*")) {
    if (!hasText(element) || known.has(lookOf(element))) continue;
    known.add(lookOf(element));
    fresh.push(lookOf(element));
    element.setAttribute("data-fresh", "");
  }
  return fresh;
}"""
_UNMARK = """() =>
  document.querySelectorAll("[data-fresh]").forEach((each) => each.removeAttribute("data-fresh"))"""
_RUN = "async ([context, options]) => (await axe.run(context, options)).violations"
#: The looks of texts whose colours were read, in this process.
_seen: set[int] = set()


@cache
def _axe() -> str:
    return str(Axe().axe_script)


def bring_axe(page: Page) -> None:
    """Have axe in all pages that are opened from now on, which is less work than to send it."""
    page.add_init_script(_axe())


def look(page: Page, name: str, *, pictures: Path | None = None) -> list[str]:
    """Wait until all is there, and return what is wrong at this width in both colour schemes.

    Axe reads colours and what is told of each part, which do not depend on the width. To read the
    colours takes most of its time, so each text is read once among those that look like it.
    """
    page.wait_for_function(IS_SETTLED)
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    left_out = [*_NOT_OURS, *_MORE_OF_THE_SAME, *([] if name in _WITH_FRAME else _FRAME)]
    faults = _violations(page, name, {"exclude": left_out}, _BUT_COLOURS)
    page.emulate_media(color_scheme="light")
    fresh = page.evaluate(_MARK_NEW, [*_seen])
    _seen.update(fresh)
    for scheme in ("light", "dark") if fresh else ():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        context = {"include": [["[data-fresh]"]], "exclude": _NOT_OURS}
        faults += _violations(page, f"{name}-{scheme}", context, _OF_COLOURS)
    page.evaluate(_UNMARK)
    keep_pictures(page, name, pictures)
    return faults + too_wide(page, name)


def _violations(
    page: Page, name: str, context: dict[str, Any], options: dict[str, Any]
) -> list[str]:
    return [
        f"{name}: {violation['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for violation in page.evaluate(_RUN, [context, options])
        for node in violation["nodes"]
    ]


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
