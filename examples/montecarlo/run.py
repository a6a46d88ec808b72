#!/usr/bin/env python3
"""Run: simulate muon pairs in a detector and fill their invariant-mass histogram.

    WORK_DIR=/scratch/work/7-01 ./run.py --part 01 --seed 910001 --events 240000

Reads `parameters.json` and `calibration.csv` from the working directory and leaves
`histogram.json` there. The same part, seed, number of events and inputs give the same bytes, so
a part that was lost with its pilot is simply run again.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import logging
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

MUON_MASS_GEV = 0.1056584
INPUTS = ("parameters.json", "calibration.csv")

log = logging.getLogger("run")


class FourVector(NamedTuple):
    """Energy and momentum in GeV; z is the beam axis."""

    e: float
    px: float
    py: float
    pz: float

    def plus(self, other: FourVector) -> FourVector:
        return FourVector(
            self.e + other.e, self.px + other.px, self.py + other.py, self.pz + other.pz
        )

    def minus(self, other: FourVector) -> FourVector:
        return FourVector(
            self.e - other.e, self.px - other.px, self.py - other.py, self.pz - other.pz
        )

    def mass(self) -> float:
        return math.sqrt(max(self.e**2 - self.px**2 - self.py**2 - self.pz**2, 0.0))

    def pt(self) -> float:
        return math.hypot(self.px, self.py)

    def eta(self) -> float:
        return math.asinh(self.pz / self.pt())


class Generator:
    """Draws true muon pairs: a resonance over an exponentially falling background."""

    def __init__(self, parameters: dict[str, Any], rng: random.Random) -> None:
        self.rng = rng
        self.background_fraction = parameters["background"]["fraction"]
        self.mean_pt = parameters["pair"]["mean_pt_gev"]
        self.rapidity_sigma = parameters["pair"]["rapidity_sigma"]
        low, high = parameters["generation"]["low_gev"], parameters["generation"]["high_gev"]

        # A relativistic Breit-Wigner is flat in the angle a with m^2 = M^2 + M*Gamma*tan(a).
        pole, width = parameters["resonance"]["mass_gev"], parameters["resonance"]["width_gev"]
        self.pole_squared, self.pole_width = pole**2, pole * width
        self.angle_low = math.atan((low**2 - self.pole_squared) / self.pole_width)
        self.angle_high = math.atan((high**2 - self.pole_squared) / self.pole_width)

        self.low = low
        self.decay = parameters["background"]["decay_gev"]
        self.background_integral = 1.0 - math.exp(-(high - low) / self.decay)

    def pair_mass(self) -> float:
        u = self.rng.random()
        if self.rng.random() < self.background_fraction:
            return self.low - self.decay * math.log(1.0 - u * self.background_integral)
        angle = self.angle_low + u * (self.angle_high - self.angle_low)
        return math.sqrt(self.pole_squared + self.pole_width * math.tan(angle))

    def muon_pair(self) -> tuple[FourVector, FourVector]:
        rng = self.rng
        mass = self.pair_mass()

        # The pair flies with an exponential transverse momentum and a Gaussian rapidity.
        pt = rng.expovariate(1.0 / self.mean_pt)
        rapidity = rng.gauss(0.0, self.rapidity_sigma)
        phi = math.tau * rng.random()
        transverse_mass = math.hypot(mass, pt)
        pair = FourVector(
            transverse_mass * math.cosh(rapidity),
            pt * math.cos(phi),
            pt * math.sin(phi),
            transverse_mass * math.sinh(rapidity),
        )

        # In the pair's rest frame the muons fly back to back, distributed as 1 + cos^2(theta).
        cos_theta = 2.0 * rng.random() - 1.0
        while 2.0 * rng.random() > 1.0 + cos_theta**2:
            cos_theta = 2.0 * rng.random() - 1.0
        sin_theta = math.sqrt(1.0 - cos_theta**2)
        phi = math.tau * rng.random()
        energy = mass / 2.0
        momentum = math.sqrt(energy**2 - MUON_MASS_GEV**2)
        px = momentum * sin_theta * math.cos(phi)
        py = momentum * sin_theta * math.sin(phi)
        pz = momentum * cos_theta

        # Boost the first muon into the laboratory; the second is what is left of the pair.
        along = px * pair.px + py * pair.py + pz * pair.pz
        push = (energy + along / (pair.e + mass)) / mass
        first = FourVector(
            (pair.e * energy + along) / mass,
            px + push * pair.px,
            py + push * pair.py,
            pz + push * pair.pz,
        )
        return first, pair.minus(first)


class Detector:
    """Measures muons: momentum resolution by the calibration table, directions exactly."""

    def __init__(self, parameters: dict[str, Any], table: Path, rng: random.Random) -> None:
        self.rng = rng
        self.min_pt = parameters["acceptance"]["min_pt_gev"]
        self.max_abs_eta = parameters["acceptance"]["max_abs_eta"]
        lines = [line for line in table.read_text().splitlines() if not line.startswith("#")]
        self.rings = [
            tuple(float(row[key]) for key in ("eta_high", "scattering", "curvature_per_gev"))
            for row in csv.DictReader(lines)
        ]
        if self.rings[-1][0] < self.max_abs_eta:
            sys.exit(f"run: {table} ends at |eta| {self.rings[-1][0]}, before the acceptance does")

    def measure(self, muon: FourVector) -> FourVector | None:
        """Return the muon as measured, or None where the detector does not see it."""
        abs_eta, pt = abs(muon.eta()), muon.pt()
        if abs_eta >= self.max_abs_eta:
            return None
        scattering, curvature = next(ring[1:] for ring in self.rings if abs_eta < ring[0])
        factor = 1.0 + self.rng.gauss(0.0, math.hypot(scattering, curvature * pt))
        if pt * factor < self.min_pt:
            return None
        px, py, pz = muon.px * factor, muon.py * factor, muon.pz * factor
        return FourVector(math.sqrt(px**2 + py**2 + pz**2 + MUON_MASS_GEV**2), px, py, pz)


class Histogram:
    """Counts in equal bins, and what fell below and above them."""

    def __init__(self, low_gev: float, high_gev: float, bins: int) -> None:
        self.low_gev, self.high_gev = low_gev, high_gev
        self.counts = [0] * bins
        self.underflow = self.overflow = 0

    def fill(self, value: float) -> None:
        if value < self.low_gev:
            self.underflow += 1
        elif value >= self.high_gev:
            self.overflow += 1
        else:
            place = (value - self.low_gev) / (self.high_gev - self.low_gev)
            self.counts[int(place * len(self.counts))] += 1


def simulate(parameters: dict[str, Any], table: Path, *, seed: int, events: int) -> Histogram:
    rng = random.Random(seed)
    generator = Generator(parameters, rng)
    detector = Detector(parameters, table, rng)
    histogram = Histogram(**parameters["histogram"])
    report_every = max(events // 5, 1)
    for number in range(1, events + 1):
        first, second = (detector.measure(muon) for muon in generator.muon_pair())
        if first and second:
            histogram.fill(first.plus(second).mass())
        if number % report_every == 0:
            log.info("%9d events, %9d in the histogram", number, sum(histogram.counts))
    return histogram


def sealed(document: dict[str, Any]) -> bytes:
    """Return the document as JSON with its own checksum, which later steps verify."""
    body = json.dumps(document, sort_keys=True).encode()
    document = {**document, "sha256": hashlib.sha256(body).hexdigest()}
    return (json.dumps(document, sort_keys=True, indent=1) + "\n").encode()


def write_whole(path: Path, content: bytes) -> None:
    """Make `path` hold exactly `content`; a reader never sees a part of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink()
        raise


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--part", required=True, help="number of this part, as in 01")
    arguments.add_argument("--seed", type=int, required=True)
    arguments.add_argument("--events", type=int, required=True)
    options = arguments.parse_args()

    work_dir = Path(os.environ["WORK_DIR"])
    log.info("part %s at site %s", options.part, os.environ.get("SITE", "unnamed"))
    missing = [name for name in INPUTS if not (work_dir / name).is_file()]
    if missing:
        sys.exit(f"run: {work_dir} lacks {', '.join(missing)}: was it staged in at this site?")
    digests = {name: hashlib.sha256((work_dir / name).read_bytes()).hexdigest() for name in INPUTS}
    parameters = json.loads((work_dir / "parameters.json").read_text())

    log.info(
        "seed %d, %d events, retry %s", options.seed, options.events, os.environ.get("RETRY", "0")
    )
    cpu_start_s = time.process_time()
    histogram = simulate(
        parameters, work_dir / "calibration.csv", seed=options.seed, events=options.events
    )
    log.info("%.1f s of CPU time", time.process_time() - cpu_start_s)

    result = {
        "part": options.part,
        "seed": options.seed,
        "events": options.events,
        "inputs": digests,
        "entries": sum(histogram.counts),
        **vars(histogram),
    }
    write_whole(work_dir / "histogram.json", sealed(result))
    log.info("wrote %s", work_dir / "histogram.json")


if __name__ == "__main__":
    main()
