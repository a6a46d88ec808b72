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
#: What scripts draw, and what has a rule of its own for screens below 352 px (`account.css`).
_PECULIAR = """() => ["[data-chart-plot], canvas, svg[data-width]", ".whole"].map(
    (kind) => document.querySelector(kind) !== null)"""
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
#: Of these, axe is told to read the texts alone that `_MARK_NEW` has marked.
_FRESH_ALONE = """axe.configure({rules: [
    {id: "color-contrast", selector: "[data-fresh]"},
    {id: "link-in-text-block", selector: "a[href][data-fresh]"}]})"""
#: Pages on which the menu and the dialog of keys are looked at too; they are the same everywhere.
_WITH_FRAME = {"dashboard", "admin"}
_FRAME = (".rail", "#keys-dialog")
#: Rows of a table are made alike.
_MORE_OF_THE_SAME = "tbody tr:nth-child(n+9)"
#: Marks the texts that look like none before in the present colour scheme, two of each look, and
#: what has such a text and would be left out. What decides about a contrast makes up a look: font
#: and decoration, the colours of its own and around it, grounds, opacities and layers from the root
#: to it, and what axe treats apart: links, controls, drawings, single signs, what is switched off.
#: What it passes over, as hidden from readers or not ours, is not marked.
_MARK_NEW = """([known, leftOut]) => {
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const seen = new Set(known[scheme]), fresh = new Map(), grounds = new Map([[null, 7]]);
  const mixed = (text, hash) => {
    let mix = hash;
    for (let at = 0; at < text.length; at += 1) mix = (31 * mix + text.charCodeAt(at)) | 0;
    return mix;
  };
  const groundOf = (element) => {
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), under = groundOf(element.parentElement);
      const isPlain = style.backgroundColor === "rgba(0, 0, 0, 0)"
        && style.backgroundImage === "none" && style.opacity === "1"
        && ["static", "relative"].includes(style.position);
      grounds.set(element, isPlain ? under : mixed([style.backgroundColor, style.backgroundImage,
        style.opacity, style.position, element.getAttribute("class")].join(), under));
    }
    return grounds.get(element);
  };
  const lookOf = (element) => {
    const style = getComputedStyle(element), around = getComputedStyle(element.parentElement);
    const isOff = (element.control ?? element).closest(":disabled, [aria-disabled=true]") !== null;
    const apart = element.matches("a, input, select, textarea, svg *") ? element.localName : "";
    const isText = /[\\p{L}\\p{N}]/u.test(element.textContent)
      && element.textContent.trim().length > 1;
    return mixed([apart, style.color, style.fontSize, style.fontWeight, style.textDecorationLine,
      style.textShadow, around.color, around.fontWeight, isOff, isText].join(), groundOf(element));
  };
  const passedOver = "[aria-hidden=true], [inert], option, .selector .help-tooltip";
  const isControl = "select, textarea, input:not([type=hidden], [type=checkbox], [type=radio], "
    + "[type=range], [type=color], [type=image])";
  const hasText = (element) => element.matches(isControl)
    || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  for (const element of document.body.querySelectorAll("*")) {
    if (!hasText(element) || element.closest(passedOver)
      || !element.checkVisibility({visibilityProperty: true})) continue;
    const look = lookOf(element), count = fresh.get(look) ?? 0;
    if (seen.has(look) || count === 2) continue;
    fresh.set(look, count + 1);
    element.setAttribute("data-fresh", "");
    const part = leftOut.length ? element.closest(leftOut.join()) : null;
    part?.setAttribute("data-kept", "");
    part?.parentElement.closest(leftOut.join())?.setAttribute("data-kept", "");
  }
  return [scheme, [...fresh.keys()], typeof axe !== "undefined"];
}"""
_RUN = """async ([context, options]) => {
  const found = await axe.run(context, options);
  for (const mark of ["data-fresh", "data-kept"])
    document.querySelectorAll(`[${mark}]`).forEach((each) => each.removeAttribute(mark));
  return found.violations;
}"""
#: The looks of texts whose colours were read, in this process, by the colour scheme.
_seen: dict[str, set[int]] = {"light": set(), "dark": set()}


@cache
def _axe() -> str:
    return f"{Axe().axe_script};{_FRESH_ALONE};"


def bring_axe(page: Page) -> None:
    """Have axe in all pages that are opened from now on, which is less work than to send it."""
    page.add_init_script(_axe())


def look(page: Page, name: str, *, pictures: Path | None = None) -> list[str]:
    """Wait until all is there, and return what is wrong at this width in both colour schemes.

    Axe reads colours and what is told of each part, which do not depend on the width, and of which
    only colours depend on the scheme. To read them takes most of its time: each text is read once
    in each scheme among those that look like it. The page stays in the scheme that came second,
    with which the next one begins.
    """
    page.wait_for_function(IS_SETTLED)
    left_out = [_MORE_OF_THE_SAME, *(() if name in _WITH_FRAME else _FRAME)]
    first, _ = _mark_new(page, left_out)
    faults = _violations(page, f"{name}-{first}", left_out, AXE)
    second = "light" if first == "dark" else "dark"
    page.emulate_media(color_scheme=second)  # type: ignore[arg-type]
    _, is_any_new = _mark_new(page, left_out)
    if is_any_new:
        faults += _violations(page, f"{name}-{second}", left_out, _OF_COLOURS)
    keep_pictures(page, name, pictures)
    return faults + too_wide(page, name)


def _mark_new(page: Page, left_out: list[str]) -> tuple[str, bool]:
    """The colour scheme of the page, and whether anything looks new in it, which is marked."""
    known = {scheme: [*looks] for scheme, looks in _seen.items()}
    scheme, fresh, has_axe = page.evaluate(_MARK_NEW, [known, left_out])
    if not has_axe:
        page.evaluate(_axe())
    _seen[scheme].update(fresh)
    return scheme, bool(fresh)


def _violations(page: Page, name: str, left_out: list[str], options: dict[str, Any]) -> list[str]:
    excluded = [*_NOT_OURS, *([f"{part}:not([data-kept])"] for part in left_out)]
    return [
        f"{name}: {violation['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for violation in page.evaluate(_RUN, [{"exclude": excluded}, options])
        for node in violation["nodes"]
    ]


def look_narrow(page: Page, name: str, *, pictures: Path | None = None) -> list[str]:
    """Faults of the page, open already, on the narrowest screen, of 320 px.

    The sheets fit all to the screen by rules that are the same from there to 390 px. What has
    another one is looked at in that width too, and so is what scripts draw: they draw it by the
    width that they find when they begin, so that such a page is loaded once more.
    """
    faults = []
    is_drawn, is_other = page.evaluate(_PECULIAR)
    if is_drawn or is_other or pictures:
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        if is_drawn:
            page.reload()
            page.wait_for_function(IS_SETTLED)
            page.wait_for_function(_CHARTS_FIT)
        keep_pictures(page, name, pictures)
        faults += too_wide(page, name)
    page.set_viewport_size(NARROW | {"width": _NARROWEST})  # type: ignore[arg-type]
    if is_drawn:
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
    """Fault of a page that has to be scrolled sideways."""
    spare = page.evaluate(_TOO_WIDE)
    return [f"{name}: {spare} px too wide"] if spare > 0 else []
