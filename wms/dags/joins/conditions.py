"""Conditions of arcs, evaluated when their parents have ended, with the reason for people.

A condition that is undefined, an error, or no truth value does not hold. What is evaluated is the
outcome in the event of the parent's end, so that the log alone gives the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import classad2

from matching.ads.classads import build_ad, evaluate, parse_expression, quote
from matching.ads.expressions import references
from wms.dags.joins.outcomes import FACT, FAULT, outcome_by_hand
from wms.dags.models import Condition, NodeEvent
from wms.dags.states import NodeCause, NodeState

_MOST_SHOWN = 200
_ENDS = (NodeState.DONE, NodeState.FAILED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds, and why, for people."""

    holds: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ParentEnd:
    """End of a parent as its event tells it: its outcome, and what caused it."""

    outcome: Mapping[str, Any]
    cause: str = ""


def verdict_of(expression: str, end: ParentEnd) -> Verdict:
    """Whether the condition holds after this end of the parent.

    After one that only the end of the DAG has caused it does not: the node is to run again.
    """
    if end.cause == NodeCause.DAG_ENDED:
        return Verdict(False, "its DAG ended while the node was under way")
    known = {name: value for name, value in end.outcome.items() if name != FAULT}
    value = evaluate(parse_expression(expression), build_ad({}, known))
    what = _in_words(value)
    given = _values_in(expression, known)
    reason = f"{_shortened(expression)} is {what}" + (f", with {given}" if given else "")
    if value is not True and FAULT in end.outcome:
        reason += f"; {end.outcome[FAULT]}"
    return Verdict(value is True, reason)


def evaluate_conditions(parents: Collection[int]) -> None:
    """Evaluate the conditions of the arcs from these nodes, which have ended."""
    conditions = list(Condition.objects.filter(parent__in=list(parents)))
    if not conditions:
        return
    ends = ends_of({each.parent_id for each in conditions})
    for condition in conditions:
        verdict = verdict_of(condition.expression, ends[condition.parent_id])
        condition.holds, condition.reason = verdict.holds, verdict.reason
    Condition.objects.bulk_update(conditions, ["holds", "reason"], batch_size=500)


def forget_conditions(parents: Collection[int]) -> None:
    """Forget what came of the conditions of arcs from these nodes, which run again."""
    Condition.objects.filter(parent__in=list(parents)).update(holds=None, reason="")


def ends_of(nodes: Iterable[int]) -> dict[int, ParentEnd]:
    """The last ends of these nodes, by the log."""
    events = NodeEvent.objects.filter(node__in=list(nodes)).order_by("pk")
    return {
        event.node_id: ParentEnd(
            event.facts.get(FACT) or outcome_by_hand(event.to_state), event.cause
        )
        for event in events
        if event.to_state in _ENDS
    }


def _in_words(value: Any) -> str:
    if value is classad2.Value.Undefined:
        return "undefined"
    if value is classad2.Value.Error:
        return "an error"
    return str(value).lower() if isinstance(value, bool) else "no truth value"


def _values_in(expression: str, known: Mapping[str, Any]) -> str:
    """The attributes that an expression uses, as they are."""
    names = {name.lower(): name for name in known}
    used = dict.fromkeys(each.name for each in references(expression))
    found = [names[name] for name in used if name in names]
    return _shortened(", ".join(f"{name} = {_written(known[name])}" for name in found))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return quote(value) if isinstance(value, str) else str(value)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
