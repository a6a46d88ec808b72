"""Failure-rate throttle of sites: new matches allowed after failures, as in HTCondor's JobRouter.

Above a threshold of failures in a period, a route may start only about threshold / (share of
failures) jobs in the next one; below it the allowance grows until the route is free again. Unlike
there, an allowance is at most half of the one before, so that a site where everything fails ends
with none, and one match is always tried after a period without failures.
"""

from __future__ import annotations

from dataclasses import dataclass

#: What a good period multiplies the allowance by: all went well, or nothing happened.
_GROWTH_IF_ALL_GOOD = 5.0
_GROWTH_IF_QUIET = 2.0


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Numbers of DAGs and pilots that ended at a site within a period, by outcome."""

    failures: int = 0
    successes: int = 0


def next_allowance(
    allowance: float | None, outcomes: Outcomes, *, threshold: int, matched: float
) -> float | None:
    """New matches allowed in the next period; None means without a bound.

    `allowance` is that of the last period, `matched` what the site got in it, which replaces an
    unbounded allowance. A threshold of 0 never bounds.
    """
    if threshold <= 0:
        return None
    if outcomes.failures > threshold:
        return _reduced(allowance, outcomes, threshold, matched)
    if allowance is None:
        return None
    grown = max(1.0, allowance * _growth(outcomes))
    return None if grown > threshold else grown


def _reduced(allowance: float | None, outcomes: Outcomes, threshold: int, matched: float) -> float:
    share_of_failures = outcomes.failures / (outcomes.failures + outcomes.successes)
    bearable = threshold / share_of_failures
    if allowance is None:
        return max(1.0, min(bearable, matched / 2)) if matched > 0 else bearable
    reduced = min(bearable, allowance / 2)
    return reduced if reduced >= 1 else 0.0


def _growth(outcomes: Outcomes) -> float:
    total = outcomes.failures + outcomes.successes
    if total == 0:
        return _GROWTH_IF_QUIET
    return 1.0 + (_GROWTH_IF_ALL_GOOD - 1.0) * outcomes.successes / total
