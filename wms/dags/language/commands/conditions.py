"""DAG commands of nodes that decide: WHEN behind a PARENT line, and JOIN; and their checks.

Pilotage's own: DAGMan knows neither. A condition is a ClassAd expression over the outcome of the
arc's parent, see `wms.dags.joins.outcomes`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression
from matching.ads.expressions import references
from wms.dags.language.faults import DagTooLarge, Fault, ReadingStopped
from wms.dags.language.lexer import keyword
from wms.dags.language.parse_state import ALL_NODES, Cursor, ParseState
from wms.dags.language.size_limits import MAX_CONDITION_LENGTH, MAX_CONDITIONS
from wms.dags.language.spec import ArcCondition, JoinRule

#: A name cannot have a blank: only a condition has this word and a parenthesis.
_WHEN = re.compile(r"\sWHEN\s*(?=\()", re.IGNORECASE)
_MOST_STEPS = 16 * 1024
_EXPECTED = "expected: JOIN name ALL, JOIN name ANY, or JOIN name and a number from 1"


def split_condition(rest: str) -> tuple[str, str]:
    """A PARENT line without its condition, and the condition; empty where there is none."""
    match = _WHEN.search(rest)
    return (rest, "") if match is None else (rest[: match.start()], rest[match.end() :].strip())


def check_condition(text: str, *, word: str = "WHEN", about: str = "parent") -> None:
    """Raise Fault for an expression that cannot be read, costs too much, or can never be true.

    `word` is the one before it, `about` whose outcome it is about.
    """
    what = f"the condition of {word}"
    if len(text) > MAX_CONDITION_LENGTH:
        raise Fault(f"{what} has more than {MAX_CONDITION_LENGTH} characters")
    try:
        expression = parse_expression(text)
        check_cost({"When": text}, most_steps=_MOST_STEPS)
    except AdError as error:
        raise Fault(f"{what}: {error.message}") from None
    used = references(text)
    if any(each.scope == "target" for each in used):
        raise Fault(f"{what} is about the {about} alone: there is no TARGET")
    if not used and not isinstance(evaluate(expression, build_ad({})), bool):
        raise Fault(f"{what} can never be true")


def add_conditions(
    cursor: Cursor, parents: Sequence[int], children: Sequence[int], text: str
) -> None:
    """Note the condition of the arcs from all of these parents to all of these children."""
    cursor.note_addition("WHEN")
    conditions = cursor.state.spec.conditions
    if len(conditions) + len(parents) * len(children) > MAX_CONDITIONS:
        raise DagTooLarge(f"at most {MAX_CONDITIONS} arcs of a DAG have conditions")
    for arc in ((parent, child) for parent in parents for child in children):
        if (first := conditions.get(arc)) is not None:
            where = f"{first.location.file}, line {first.location.line}"
            names = " to ".join(cursor.state.specs[end].name for end in arc)
            raise Fault(f"the arc from {names} has a condition already, by {where}")
        conditions[arc] = ArcCondition(text, cursor.location)


def join(cursor: Cursor, rest: str) -> None:
    """`JOIN name ALL|ANY|n`: how many of the node's arcs have to hold before it runs."""
    words = cursor.words(rest)
    if len(words) != 2:
        raise Fault(_EXPECTED)
    name, rule = words
    if name.upper() == ALL_NODES and name not in cursor.scope.names:
        raise Fault("JOIN is about one node")
    needed = _needed(rule)
    if name not in cursor.scope.names:
        cursor.other_node(name)
    cursor.note_addition("JOIN")
    cursor.state.spec.joins[cursor.scope.names[name]] = JoinRule(needed, cursor.location)


def _needed(rule: str) -> int | None:
    word = keyword(rule)
    if word in {"ALL", "ANY"}:
        return None if word == "ALL" else 1
    if not rule.isascii() or not rule.isdigit() or len(rule) > 9 or not int(rule):
        raise Fault(_EXPECTED)
    return int(rule)


def check_joins(state: ParseState) -> None:
    """Add a fault for each node that needs more arcs than it has."""
    spec = state.spec
    needed = {at: rule for at, rule in spec.joins.items() if rule.needed is not None}
    counts = Counter(_among(spec.arcs.children, needed)) if needed else {}
    with suppress(ReadingStopped):
        for at, rule in needed.items():
            if counts.get(at, 0) < (rule.needed or 0):
                state.collector.add_fault(
                    f"{state.specs[at].name} needs {rule.needed} arcs that hold, and has "
                    f"{counts.get(at, 0)} in all",
                    rule.location,
                    "JOIN",
                )


def _among(children: Iterable[int], wanted: Iterable[int]) -> Iterable[int]:
    known = frozenset(wanted)
    return (child for child in children if child in known)
