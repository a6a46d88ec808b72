"""Tones of states: distinguishable, readable, defined in one place."""

from __future__ import annotations

import re
from itertools import product
from math import dist
from pathlib import Path

import pytest
from django.conf import settings

CSS = Path(settings.BASE_DIR, "static", "css")
LIGHT, DARK = (CSS / "tokens.css").read_text(encoding="utf-8").split('[data-bs-theme="dark"]')[:2]
#: How colours look to who lacks one kind of cones (Machado, Oliveira and Fernandes 2009).
SIGHTS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
}
#: States that must not be taken for each other at a glance, whatever their shapes.
PAIRS = (("bad", "warn"), ("bad", "good"), ("bad", "go"), ("warn", "good"), ("good", "go"))
#: Twelve steps that can just be seen apart, in CIE 1976.
LEAST = 12


def _linear(theme: str, name: str) -> tuple[float, ...]:
    found = re.search(rf"--{name}: #([0-9a-f]{{6}});", theme)
    assert found is not None, name
    parts = [int(found[1][at : at + 2], 16) / 255 for at in (0, 2, 4)]
    return tuple(p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)


def _lab(colour: tuple[float, ...], sight: str) -> tuple[float, float, float]:
    r, g, b = (
        min(1.0, max(0.0, sum(w * part for w, part in zip(row, colour, strict=True))))
        for row in SIGHTS[sight]
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _luminance(colour: tuple[float, ...]) -> float:
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("part", ["", "-fill"])
def test_what_is_wrong_looks_like_nothing_else_to_colour_blind_people(
    theme: str, part: str
) -> None:
    text = LIGHT if theme == "light" else DARK

    near = {}
    for sight, (one, other) in product(SIGHTS, PAIRS):
        apart = dist(*(_lab(_linear(text, name + part), sight) for name in (one, other)))
        if apart < LEAST:
            near[sight, one, other] = round(apart, 1)

    assert near == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("tone", ["wait", "next", "go", "good", "warn", "bad", "off"])
def test_each_tone_can_be_read_on_its_ground(theme: str, tone: str) -> None:
    text = LIGHT if theme == "light" else DARK

    for ground in ("surface", "paper", f"{tone}-soft"):
        assert _contrast(_linear(text, tone), _linear(text, ground)) >= 4.5, ground


def test_colours_are_named_in_one_sheet() -> None:
    raw = re.compile(r"#[0-9a-fA-F]{3,8}\b(?![^;{]*\{)|\b(?:rgb|hsl)a?\(")

    found = {
        sheet.name: raw.findall(sheet.read_text(encoding="utf-8"))
        for sheet in CSS.glob("*.css")
        if sheet.name != "tokens.css"
    }

    assert {name: colours for name, colours in found.items() if colours} == {}


def test_no_sheet_is_too_long_to_be_read() -> None:
    lengths = {
        sheet.name: len(sheet.read_text(encoding="utf-8").splitlines())
        for sheet in CSS.glob("*.css")
    }

    assert {name: length for name, length in lengths.items() if length > 400} == {}
