"""Weighted random draws of a claim: a TaskQueue by its priority, then one of its jobs.

A job is drawn by the weight of its job priority, which its owner sets. Each candidate gets a random
number that depends on its weight; the smallest wins. Also the probability of each candidate to win.
`wms.taskqueues.draws.draw` does the same in SQL; tests compare it with this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

#: A job's priority is set by its owner, from 0 to 10.
MAX_JOB_PRIORITY = 10
_LEAST, _MOST = 1e-5, 1e5
_STEPS = 4000


class Law(StrEnum):
    """Distribution of the numbers that are compared, from U uniform in 0 to 1."""

    #: -ln(U) / w, an exponential variate: the chance to win is in proportion to the weight.
    EXPONENTIAL = "exponential"
    #: U / w, as on DIRAC's page of 2009: who has the larger weight wins more often than that.
    UNIFORM = "uniform"


def job_weight(priority: int) -> float:
    """Weight of a job: its priority, but 1e-5 for 0 and 1e5 for 10 (DIRAC, 2009).

    Raises ValueError for a priority that is not from 0 to 10.
    """
    if not 0 <= priority <= MAX_JOB_PRIORITY:
        raise ValueError(f"priority must be from 0 to {MAX_JOB_PRIORITY}, not {priority}")
    return {0: _LEAST, MAX_JOB_PRIORITY: _MOST}.get(priority, float(priority))


#: The weights of the priorities 0 to 10.
JOB_WEIGHTS = tuple(job_weight(priority) for priority in range(MAX_JOB_PRIORITY + 1))


def winner(weights: Sequence[float], uniforms: Sequence[float], law: Law) -> int:
    """Index of the winner; `uniforms` are numbers above 0 and up to 1, one for each weight."""
    return min(range(len(weights)), key=lambda i: variate(weights[i], uniforms[i], law))


def variate(weight: float, uniform: float, law: Law) -> float:
    """Random number of a candidate with this weight; the smallest wins."""
    return uniform / weight if law is Law.UNIFORM else -math.log(uniform) / weight


def smallest_of(jobs: int, weight: float, uniform: float, law: Law) -> float:
    """Smallest variate among `jobs` jobs of one weight, drawn with a single uniform number.

    It lets the winner among the jobs of a TaskQueue be found from the counts by priority: the
    smallest of n exponential variates is one of n times the weight; of n uniform numbers it is
    distributed as 1 - U^(1/n).
    """
    if law is Law.EXPONENTIAL:
        return variate(jobs * weight, uniform, law)
    return -math.expm1(math.log(uniform) / jobs) / weight


def chances(weights: Sequence[float], law: Law) -> list[float]:
    """Probability of each candidate to win.

    For U / w the variates are uniform in 0 to 1/w each. The i-th is the smallest with probability
    w_i times the integral of the product of (1 - w_j x) over the others j, from 0 to the least 1/w:
    computed by Simpson's rule and scaled to a sum of one.
    """
    if law is Law.EXPONENTIAL:
        parts = list(weights)
    else:
        end = 1.0 / max(weights)
        parts = [_simpson(weights, index, end) for index in range(len(weights))]
    whole = sum(parts)
    return [part / whole for part in parts]


def _simpson(weights: Sequence[float], index: int, end: float) -> float:
    others = [weight for place, weight in enumerate(weights) if place != index]
    total = 0.0
    for step in range(_STEPS + 1):
        x = end * step / _STEPS
        factor = 1 if step in {0, _STEPS} else 4 if step % 2 else 2
        total += factor * math.prod(1.0 - weight * x for weight in others)
    return weights[index] * total * end / (3 * _STEPS)
