"""Colours and font of history figures, light and dark: those of the pages, from `css/tokens.css`.

Figures leave the pages, for notebooks and reports, so they cannot read the style sheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Scheme(StrEnum):
    """Light or dark background."""

    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as `#rrggbb`; `fills` has one for each tone of `portal.shared.state_badges`."""

    surface: str
    raised: str
    line: str
    line_strong: str
    ink: str
    ink_2: str
    ink_3: str
    fills: Mapping[str, str]


PALETTES = {
    Scheme.LIGHT: Palette(
        surface="#ffffff", raised="#ffffff", line="#dfe5eb", line_strong="#b9c4cf",
        ink="#16202a", ink_2="#465462", ink_3="#5b6976",
        fills={
            "wait": "#8594a2", "next": "#3aa3bd", "go": "#3c6fd6", "good": "#17936c",
            "warn": "#c98208", "bad": "#c0262d", "off": "#98a2ab",
        },
    ),
    Scheme.DARK: Palette(
        surface="#121a23", raised="#18222d", line="#223040", line_strong="#3a4c60",
        ink="#dbe5ee", ink_2="#a6b6c5", ink_3="#8c9dae",
        fills={
            "wait": "#7c8c9b", "next": "#3fa9c4", "go": "#5c8fee", "good": "#2fae84",
            "warn": "#dfa52e", "bad": "#d9423c", "off": "#66727e",
        },
    ),
}  # fmt: skip
FONT = '"Inter Variable", "Inter", system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif'


def faded(colour: str, share: float) -> str:
    """The colour with only this share of its strength."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return f"rgba({red}, {green}, {blue}, {share})"
