"""Benchmark of one core, after DIRAC's DB12: how fast it draws random numbers, in some seconds.

DB12 (DIRAC Benchmark 2012) draws 12.5 million numbers from a normal distribution and calls 250 CPU
seconds 1: <https://github.com/DIRACGrid/DB12>. Its scores are close to HS06 of one core. A part of
that many says the same, less exactly.
"""

from __future__ import annotations

import random
import time

from .finding import Finding, Given

#: Numbers of DB12, and its calibration in CPU seconds.
_DB12_NUMBERS = 12_500_000
_DB12_SECONDS = 250.0
#: Score of a core of power 1.0.
REFERENCE_SCORE = 10.0
_NUMBERS_AT_ONCE = 20_000


def benchmark(given: Given) -> Finding:
    """CPU power of one core, measured for `seconds` of its CPU time."""
    limit_s = float(given["settings"]["seconds"])
    draw = random.Random(12).normalvariate
    drawn, used_s = 0, 0.0
    began_s = time.process_time()
    while used_s < limit_s:
        total = squares = 0.0
        for _ in range(_NUMBERS_AT_ONCE):
            number = draw(10, 1)
            total += number
            squares += number * number
        drawn += _NUMBERS_AT_ONCE
        used_s = time.process_time() - began_s
    score = _DB12_SECONDS * drawn / _DB12_NUMBERS / used_s
    return Finding(
        metrics={"db12": round(score, 2), "cpu_s": round(used_s, 2)},
        attributes={"CpuPower": round(score / REFERENCE_SCORE, 3)},
    )
