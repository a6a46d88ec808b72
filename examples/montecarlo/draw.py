#!/usr/bin/env python3
"""Draw: fit the merged mass spectrum, plot it and sum up the production.

    ./draw.py merged.json

Writes `mass.svg`, self-contained and readable on light and dark pages, and `summary.json`.

The fit: a pseudo-Voigt peak (a Lorentz and a Gauss curve of equal width, mixed) over an
exponential background, by least squares with the counts as variances. The peak position and its
full width at half maximum are parameters of that curve; the width is the resonance's natural one
widened by the detector's resolution.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

Z_MASS_GEV = 91.1876
FIT_STEPS = 60
#: Below, the muons' momentum threshold bends the background; above, there is little to learn.
FIT_RANGE_GEV = (72.0, 112.0)

log = logging.getLogger("draw")


class Curve(NamedTuple):
    """Muon pairs per GeV: a pseudo-Voigt peak over an exponential background."""

    peak_entries: float
    peak_gev: float
    fwhm_gev: float
    lorentz_fraction: float
    background_per_gev: float
    background_slope: float

    def background(self, mass: float) -> float:
        return self.background_per_gev * math.exp(self.background_slope * (mass - Z_MASS_GEV))

    def __call__(self, mass: float) -> float:
        distance = 2.0 * (mass - self.peak_gev) / self.fwhm_gev
        lorentz = 2.0 / math.pi / (1.0 + distance**2)
        gauss = 2.0 * math.sqrt(math.log(2.0) / math.pi) * 2.0 ** -(distance**2)
        mixed = self.lorentz_fraction * lorentz + (1.0 - self.lorentz_fraction) * gauss
        return self.peak_entries * mixed / self.fwhm_gev + self.background(mass)


class Fit(NamedTuple):
    curve: Curve
    errors: Curve
    chi2: float
    degrees_of_freedom: int


class Spectrum:
    """The merged histogram, with the middle of each bin and the bins that are fitted."""

    def __init__(self, merged: dict[str, Any]) -> None:
        self.low, self.high = merged["low_gev"], merged["high_gev"]
        self.counts = merged["counts"]
        self.bin_gev = (self.high - self.low) / len(self.counts)
        self.centres = [self.low + (i + 0.5) * self.bin_gev for i in range(len(self.counts))]
        low, high = FIT_RANGE_GEV
        self.fitted = [(m, n) for m, n in zip(self.centres, self.counts) if low < m < high]

    def residuals(self, curve: Curve) -> list[float]:
        """Differences to the curve in standard deviations, one for each fitted bin."""
        return [(n - curve(m) * self.bin_gev) / math.sqrt(max(n, 1)) for m, n in self.fitted]


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve the linear equations by Gauss elimination with row exchange."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            factor = rows[row][column] if row != column else 0.0
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [row[size] for row in rows]


def first_guess(spectrum: Spectrum) -> Curve:
    counts = [count for _, count in spectrum.fitted]
    edge = max(len(counts) // 10, 1)
    left, right = (max(sum(side) / edge, 0.5) for side in (counts[:edge], counts[-edge:]))
    return Curve(
        peak_entries=max(sum(counts) * 0.5, 1.0),
        peak_gev=max(spectrum.fitted, key=lambda point: point[1])[0],
        fwhm_gev=4.0,
        lorentz_fraction=0.5,
        background_per_gev=math.sqrt(left * right) / spectrum.bin_gev,
        background_slope=math.log(right / left) / (FIT_RANGE_GEV[1] - FIT_RANGE_GEV[0]),
    )


def normal_equations(spectrum: Spectrum, curve: Curve) -> tuple[list[list[float]], list[float]]:
    """Return J'J and J'r for the residuals r and their numerical derivatives J."""
    residuals = spectrum.residuals(curve)
    columns = []
    for index, value in enumerate(curve):
        step = 1e-6 * max(abs(value), 1e-3)
        shifted = curve._replace(**{Curve._fields[index]: value + step})
        moved = spectrum.residuals(shifted)
        columns.append([(after - before) / step for after, before in zip(moved, residuals)])
    product = [[sum(a * b for a, b in zip(one, two)) for two in columns] for one in columns]
    return product, [sum(a * r for a, r in zip(column, residuals)) for column in columns]


def fit(spectrum: Spectrum) -> Fit:
    """Levenberg and Marquardt's method: damped steps, only ever downhill."""
    curve, damping = first_guess(spectrum), 1e-2
    chi2 = sum(r**2 for r in spectrum.residuals(curve))
    for _ in range(FIT_STEPS):
        product, gradient = normal_equations(spectrum, curve)
        damped = [
            [value * (1.0 + damping) if i == j else value for j, value in enumerate(row)]
            for i, row in enumerate(product)
        ]
        trial = Curve(*(a - b for a, b in zip(curve, solve(damped, gradient))))
        trial = trial._replace(
            fwhm_gev=max(trial.fwhm_gev, spectrum.bin_gev),
            lorentz_fraction=min(max(trial.lorentz_fraction, 0.0), 1.0),
        )
        trial_chi2 = sum(r**2 for r in spectrum.residuals(trial))
        if trial_chi2 < chi2:
            curve, chi2, damping = trial, trial_chi2, damping / 5.0
        else:
            damping *= 5.0
    product, _ = normal_equations(spectrum, curve)
    size = len(curve)
    units = [[float(i == j) for j in range(size)] for i in range(size)]
    errors = Curve(*(math.sqrt(abs(solve(product, units[i])[i])) for i in range(size)))
    return Fit(curve, errors, chi2, len(spectrum.fitted) - size)


WIDTH, HEIGHT = 840, 540
LEFT, RIGHT, TOP, BOTTOM = 88, 812, 112, 468
LIGHT = {
    "panel": "#ffffff",
    "grid": "#e6eaf0",
    "ink": "#1f2937",
    "soft": "#5b6676",
    "bars": "#bcd7f5",
    "steps": "#2f74c0",
    "fit": "#d9480f",
}
DARK = {
    "panel": "#161b22",
    "grid": "#2a323d",
    "ink": "#e6edf3",
    "soft": "#9aa7b5",
    "bars": "#1d3f66",
    "steps": "#6cb0f5",
    "fit": "#ff922b",
}


class Canvas:
    """An SVG picture in data coordinates: GeV to the right, muon pairs upwards.

    Colours are attributes, so that a page which forbids styles still shows the light picture;
    the style sheet only repaints it for readers who prefer dark pages.
    """

    def __init__(self, low: float, high: float, top: float) -> None:
        self.low, self.high, self.top = low, high, top
        self.root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {WIDTH} {HEIGHT}",
                "role": "img",
                "font-family": "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
            },
        )
        rules = "".join(
            f".fill-{name}{{fill:{colour}}}.line-{name}{{stroke:{colour}}}"
            for name, colour in DARK.items()
        )
        style = ElementTree.SubElement(self.root, "style")
        style.text = f"@media (prefers-color-scheme: dark){{{rules}}}"

    def x(self, mass: float) -> float:
        return LEFT + (mass - self.low) / (self.high - self.low) * (RIGHT - LEFT)

    def y(self, count: float) -> float:
        return BOTTOM - count / self.top * (BOTTOM - TOP)

    def add(self, tag: str, *, fill: str = "", line: str = "", text: str = "", **more: Any) -> None:
        """Add one element painted with named colours; `stroke_width=2` means stroke-width."""
        classes = ([f"fill-{fill}"] if fill else []) + ([f"line-{line}"] if line else [])
        attributes = {"class": " ".join(classes), "fill": LIGHT[fill] if fill else "none"}
        if line:
            attributes["stroke"] = LIGHT[line]
        for key, value in more.items():
            shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
            attributes[key.replace("_", "-")] = str(shown)
        ElementTree.SubElement(self.root, tag, attributes).text = text or None

    def write(self, x: float, y: float, text: str, *, size: int = 13, **more: Any) -> None:
        self.add("text", **{"x": x, "y": y, "font_size": size, "fill": "ink", "text": text, **more})

    def path(self, points: list[tuple[float, float]], **more: Any) -> None:
        places = " L".join(f"{self.x(m):.2f} {self.y(n):.2f}" for m, n in points)
        self.add("path", d=f"M{places}", **more)


def round_step(span: float, wanted: int) -> float:
    """Return 1, 2, 2.5 or 5 times a power of ten that cuts `span` into about `wanted` pieces."""
    rough = span / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= rough)


def draw_axes(canvas: Canvas, bin_gev: float) -> None:
    step = round_step(canvas.top, 6)
    for number in range(int(canvas.top / step) + 1):
        count = number * step
        y = canvas.y(count)
        canvas.add("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, line="grid", stroke_width=1)
        canvas.write(LEFT - 10, y + 4.5, f"{count:,.0f}", text_anchor="end", fill="soft")
    for mass in range(math.ceil(canvas.low), math.floor(canvas.high) + 1):
        x, length = canvas.x(mass), 7 if mass % 10 == 0 else 4
        canvas.add("line", x1=x, x2=x, y1=BOTTOM, y2=BOTTOM + length, line="soft", stroke_width=1)
        if mass % 10 == 0:
            canvas.write(x, BOTTOM + 24, f"{mass}", text_anchor="middle", fill="soft")
    canvas.add("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, line="soft", stroke_width=1.5)
    canvas.write(RIGHT, BOTTOM + 50, "Invariant mass m(μ⁺μ⁻) [GeV]", size=14, text_anchor="end")
    canvas.write(LEFT - 68, TOP - 16, f"Muon pairs / {bin_gev:g} GeV", size=14)


def draw_spectrum(canvas: Canvas, spectrum: Spectrum, curve: Curve) -> None:
    half = spectrum.bin_gev / 2.0
    steps = [
        (edge, count)
        for centre, count in zip(spectrum.centres, spectrum.counts)
        for edge, count in ((centre - half, count), (centre + half, count))
    ]
    closed = [(spectrum.low, 0.0), *steps, (spectrum.high, 0.0)]
    canvas.path(closed, fill="bars")
    canvas.path(steps, line="steps", stroke_width=1.2, stroke_linejoin="round")
    for centre, count in zip(spectrum.centres, spectrum.counts):
        x, error = canvas.x(centre), math.sqrt(count)
        ends = {"y1": canvas.y(count + error), "y2": canvas.y(max(count - error, 0.0))}
        canvas.add("line", x1=x, x2=x, **ends, line="steps", stroke_width=1.2)

    low, high = FIT_RANGE_GEV
    masses = [low + (high - low) * i / 400 for i in range(401)]
    background = [(m, curve.background(m) * spectrum.bin_gev) for m in masses[::10]]
    canvas.path(background, line="fit", stroke_width=1.8, stroke_dasharray="2 5")
    fitted = [(m, curve(m) * spectrum.bin_gev) for m in masses]
    canvas.path(fitted, line="fit", stroke_width=2.2, stroke_linejoin="round")


def draw_result(canvas: Canvas, spectrum: Spectrum, result: Fit) -> None:
    """Mark the peak and its width, and explain the lines."""
    curve, bin_gev = result.curve, spectrum.bin_gev
    x, y = canvas.x(curve.peak_gev), canvas.y(curve(curve.peak_gev) * bin_gev)
    canvas.add("line", x1=x, x2=x, y1=y - 22, y2=y - 5, line="fit", stroke_width=1.5)
    label = f"{curve.peak_gev:.3f} ± {result.errors.peak_gev:.3f} GeV"
    canvas.add("rect", x=x - 98, y=y - 47, width=196, height=24, fill="panel")
    canvas.write(x, y - 30, label, size=16, text_anchor="middle", font_weight=600, fill="fit")

    middle = canvas.y((curve(curve.peak_gev) + curve.background(curve.peak_gev)) / 2.0 * bin_gev)
    right = canvas.x(curve.peak_gev + curve.fwhm_gev / 2.0)
    label = f"full width at half maximum {curve.fwhm_gev:.2f} GeV"
    canvas.add("line", x1=right + 8, x2=right + 30, y1=middle, y2=middle, line="soft")
    canvas.write(right + 38, middle + 4.5, label, fill="soft")

    entries = (
        ("simulated, with statistical errors", {"line": "steps", "stroke_width": 6.0}),
        ("fit: peak over background", {"line": "fit", "stroke_width": 2.2}),
        ("background alone", {"line": "fit", "stroke_width": 1.8, "stroke_dasharray": "2 5"}),
    )
    canvas.add("rect", x=LEFT + 6, y=TOP + 22, width=262, height=88, rx=4, fill="panel")
    for row, (meaning, look) in enumerate(entries):
        y = TOP + 40.0 + 26 * row
        canvas.add("line", x1=LEFT + 14, x2=LEFT + 44, y1=y, y2=y, **look)
        canvas.write(LEFT + 54, y + 4.5, meaning, fill="soft")


def draw(merged: dict[str, Any], spectrum: Spectrum, result: Fit) -> bytes:
    highest = max(result.curve(result.curve.peak_gev) * spectrum.bin_gev, *spectrum.counts)
    canvas = Canvas(spectrum.low, spectrum.high, 1.16 * highest)
    title = "The Z boson in simulated muon pairs"
    ElementTree.SubElement(canvas.root, "title").text = title
    panel = {"x": 0.5, "y": 0.5, "width": WIDTH - 1, "height": HEIGHT - 1, "rx": 10}
    canvas.add("rect", **panel, fill="panel", line="grid")
    canvas.write(LEFT - 68, 38, title, size=20, font_weight=600)
    facts = (
        f"{len(merged['parts'])} jobs, {merged['events']:,} simulated events, "
        f"{merged['entries']:,} in the histogram"
    )
    canvas.write(LEFT - 68, 60, facts, size=14, fill="soft")
    draw_axes(canvas, spectrum.bin_gev)
    draw_spectrum(canvas, spectrum, result.curve)
    draw_result(canvas, spectrum, result)
    return ElementTree.tostring(canvas.root, encoding="utf-8", xml_declaration=True) + b"\n"


def summary(merged: dict[str, Any], result: Fit) -> dict[str, Any]:
    curve, errors = result.curve, result.errors
    return {
        "jobs": len(merged["parts"]),
        "events": merged["events"],
        "entries": merged["entries"],
        "peak_gev": round(curve.peak_gev, 4),
        "peak_error_gev": round(errors.peak_gev, 4),
        "fwhm_gev": round(curve.fwhm_gev, 4),
        "fwhm_error_gev": round(errors.fwhm_gev, 4),
        "method": (
            "least-squares fit of a pseudo-Voigt peak over an exponential background, "
            f"{FIT_RANGE_GEV[0]:g}-{FIT_RANGE_GEV[1]:g} GeV; errors are statistical"
        ),
        "chi2": round(result.chi2, 1),
        "degrees_of_freedom": result.degrees_of_freedom,
        "parts": merged["parts"],
    }


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    if len(sys.argv) != 2:
        sys.exit("draw: name the merged histogram, as in: draw.py merged.json")
    merged = json.loads(Path(sys.argv[1]).read_text())
    spectrum = Spectrum(merged)
    result = fit(spectrum)
    told = summary(merged, result)
    Path("mass.svg").write_bytes(draw(merged, spectrum, result))
    Path("summary.json").write_text(json.dumps(told, indent=1) + "\n")
    log.info("peak at %(peak_gev).3f +- %(peak_error_gev).3f GeV", told)
    log.info("full width at half maximum %(fwhm_gev).3f +- %(fwhm_error_gev).3f GeV", told)
    log.info("chi2 %(chi2).1f for %(degrees_of_freedom)d degrees of freedom", told)


if __name__ == "__main__":
    main()
