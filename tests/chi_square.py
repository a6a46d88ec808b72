"""Pearson's chi-square test: assertions that counts were, or were not, drawn with given chances."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist


def statistic(counts: Sequence[int], chances: Sequence[float]) -> float:
    """Pearson's sum over (observed - expected)^2 / expected."""
    whole = sum(counts)
    return sum(
        (count - whole * chance) ** 2 / (whole * chance)
        for count, chance in zip(counts, chances, strict=True)
    )


def limit(degrees: int, doubt: float) -> float:
    """What the statistic exceeds with the chance `doubt` although the chances are right.

    By Wilson and Hilferty: the cube root of a chi-square variate is nearly normal.
    """
    spread = 2 / (9 * degrees)
    return degrees * (1 - spread + NormalDist().inv_cdf(1 - doubt) * spread**0.5) ** 3


def assert_drawn(counts: Sequence[int], chances: Sequence[float]) -> None:
    """The counts are such as one in a hundred draws with these chances, or more, would give.

    Every expected count is at least five, as the test requires.
    """
    assert min(chances) * sum(counts) >= 5
    assert statistic(counts, chances) < limit(len(counts) - 1, 0.01)


def assert_not_drawn(counts: Sequence[int], chances: Sequence[float]) -> None:
    """Not one in a billion draws with these chances would give such counts."""
    assert statistic(counts, chances) > limit(len(counts) - 1, 1e-9)
