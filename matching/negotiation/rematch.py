"""Rematch decision on a running DAG: stay, leave its site, or be held, by the policy expression.

Also the attributes on the DAG's progress that the expression can use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression

_ATTRIBUTE = "RematchExpression"


@dataclass(frozen=True, slots=True)
class Figures:
    """Progress of a DAG at its site; times in seconds, nodes and pilots since its match."""

    matched_s: int
    queued_s: int
    nodes_total: int
    nodes_running: int
    nodes_queued: int
    nodes_done: int
    nodes_failed_here: int
    pilots_failed_here: int
    rematches: int

    def attributes(self) -> dict[str, int]:
        """Figures by the attribute names that expressions use."""
        return {
            "MatchedSeconds": self.matched_s,
            "QueuedSeconds": self.queued_s,
            "NodesTotal": self.nodes_total,
            "NodesRunning": self.nodes_running,
            "NodesQueued": self.nodes_queued,
            "NodesDone": self.nodes_done,
            "NodesFailedHere": self.nodes_failed_here,
            "PilotsFailedHere": self.pilots_failed_here,
            "Rematches": self.rematches,
        }


class Action(StrEnum):
    """Action on a DAG: stay, rematch or hold; unclear when the expression is no truth value."""

    STAY = "stay"
    REMATCH = "rematch"
    HOLD = "hold"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Decision:
    """Action on a DAG; with an explanation where the expression has no clear value."""

    action: Action
    fault: str = ""


def decide(
    expression: str,
    figures: Figures,
    *,
    own: Mapping[str, str],
    target: Mapping[str, object],
    past_rematches: int,
    max_rematches: int,
) -> Decision:
    """Take the DAG from its site if the expression is exactly true; hold it at the maximum.

    MY is the DAG's `own` ad with the figures, which win; TARGET is its site's ad. An expression
    that is undefined, an error or not boolean never takes a DAG away: the action is UNCLEAR.
    """
    fault = _fault(expression, tuple(sorted(own.items())))
    if fault:
        return Decision(Action.UNCLEAR, fault)
    my = build_ad(own, figures.attributes())
    value = evaluate(parse_expression(expression), my, build_ad({}, target))
    if value is False:
        return Decision(Action.STAY)
    if value is not True:
        return Decision(Action.UNCLEAR, f"its value is {_shown(value)}, not a truth value")
    return Decision(Action.REMATCH if past_rematches < max_rematches else Action.HOLD)


@lru_cache(maxsize=1024)
def _fault(expression: str, own: tuple[tuple[str, str], ...]) -> str:
    """Reason why the expression must not be evaluated; cached for DAGs with equal ads."""
    try:
        parse_expression(expression)
        check_cost({**dict(own), _ATTRIBUTE: expression})
    except AdError as error:
        return error.message
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, classad2.Value):
        return str(value.name).lower()
    return repr(value)[:80]
