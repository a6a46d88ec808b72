"""DAG commands that let a DAG succeed though nodes failed: SUCCESS WHEN, TOLERANCE CATEGORY.

Also the counts that the expression of SUCCESS WHEN can use, its check, its value, and how many
failures a tolerance lets pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression
from matching.ads.expressions import references
from wms.dags.language.faults import Fault
from wms.dags.language.lexer import keyword
from wms.dags.language.numbers import whole
from wms.dags.language.parse_state import Cursor, ParseState
from wms.dags.language.size_limits import MAX_NAME_LENGTH
from wms.dags.language.spec import GroupTolerance

#: Names that the expression knows: nodes of the DAG by what became of them, and all of them.
COUNTS = ("Done", "Failed", "Tolerated", "Futile", "Skipped", "Total")
_KNOWN = {name.lower(): name for name in COUNTS}
_ATTRIBUTE = "SuccessWhen"
#: It is a line of a DAG file, and is shown in reasons.
MAX_RULE_LENGTH = 1000
_OF_NODES = frozenset({"FAIL-FAST", "WAIT"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """Value of a SUCCESS WHEN expression; `fault` tells why it has no truth value."""

    is_success: bool
    fault: str = ""


def success(cursor: Cursor, rest: str) -> None:
    """`SUCCESS WHEN expression`: when it is true at the end, the DAG is completed."""
    option, *behind = cursor.source.head(rest) or [""]
    if keyword(option) != "WHEN" or not behind:
        raise Fault("expected: SUCCESS WHEN (expression)")
    if cursor.depth:
        cursor.warn("has no effect in splices, fragments and included files")
        return
    state = cursor.state
    if state.success_at is not None:
        first = state.success_at
        raise Fault(f"a DAG has one SUCCESS line at most, first in {first.file}, line {first.line}")
    expression = behind[0].strip()
    fault = rule_fault(expression)
    if fault:
        raise Fault(fault)
    state.success_at = cursor.location
    cursor.note_addition("SUCCESS WHEN, and would let the DAG fail")
    state.spec.success_rule = expression


def is_of_category(words: Sequence[str]) -> bool:
    """Whether the words after TOLERANCE are about a category, and not about one node's jobs.

    A node may be called `category`, too: its line has a number in the second place, and a `%` or
    an option behind it.
    """
    if len(words) != 3 or keyword(words[0]) != "CATEGORY":
        return False
    return words[2] != "%" and keyword(words[2]) not in _OF_NODES


def category_tolerance(cursor: Cursor, words: Sequence[str]) -> None:
    """`TOLERANCE CATEGORY category n|n%`: so many nodes of it may fail.

    As with MAXJOBS, a line in an outer file replaces that of a splice.
    """
    _, name, given = words
    is_percent = given.endswith("%")
    most = 100 if is_percent else cursor.state.limits.max_nodes
    limit = whole(given.removesuffix("%"), "a tolerance", most=most)
    full_name = cursor.scope.category(name)
    if not name.strip("+") or len(full_name) > MAX_NAME_LENGTH:
        raise Fault(f"the name of a category has 1 to {MAX_NAME_LENGTH} characters: {name[:80]}")
    cursor.note_addition("a tolerance of a category, and would let its nodes fail")
    tolerance = GroupTolerance(limit, is_percent, cursor.scope.depth, cursor.location)
    known = cursor.state.spec.tolerances.get(full_name)
    if known is not None and known.depth < tolerance.depth:
        return
    if known is not None and known.depth == tolerance.depth and known.given != tolerance.given:
        cursor.warn(f"category {name} had the tolerance {known.given}: the last one counts")
    cursor.state.spec.tolerances[full_name] = tolerance


def warn_of_empty_groups(state: ParseState) -> None:
    """Warn of tolerances of categories that no node is in."""
    tolerances = state.spec.tolerances
    if not tolerances:
        return
    sizes = Counter(node.category for node in state.specs if node.category in tolerances)
    for category, tolerance in tolerances.items():
        if not sizes[category]:
            message = f"no node is in category {category}"
            state.collector.add_warning(message, tolerance.location, "TOLERANCE")


def most_tolerated(tolerance: GroupTolerance, size: int) -> int:
    """Number of failures that are tolerated among so many nodes; percentages are rounded down."""
    return tolerated_among(tolerance.given, size)


def tolerated_among(given: str, size: int) -> int:
    """The same for a tolerance as it is written: a number, or a percentage."""
    limit = int(given.removesuffix("%"))
    return min(size * limit // 100 if given.endswith("%") else limit, size)


def judge(expression: str, counts: Mapping[str, int]) -> Verdict:
    """Value of a SUCCESS WHEN expression; without a truth value it is no success."""
    fault = _unusable(expression)
    if fault:
        return Verdict(is_success=False, fault=fault)
    value = evaluate(parse_expression(expression), build_ad({}, counts))
    if isinstance(value, classad2.Value):
        return Verdict(is_success=False, fault=f"its value is {str(value.name).lower()}")
    if not isinstance(value, bool):
        return Verdict(is_success=False, fault=f"its value is {repr(value)[:80]}, no truth value")
    return Verdict(value)


def rule_fault(expression: str) -> str:
    """Why an expression cannot stand in SUCCESS WHEN; empty if it can."""
    if len(expression) > MAX_RULE_LENGTH:
        return f"the expression of SUCCESS WHEN has at most {MAX_RULE_LENGTH} characters"
    fault = _unusable(expression)
    if fault:
        return fault
    # A value that is no truth value in one case is none in any.
    value = evaluate(parse_expression(expression), build_ad({}, dict.fromkeys(COUNTS, 1)))
    if not isinstance(value, bool | classad2.Value):
        return f"the expression is no truth value, but {repr(value)[:80]}"
    return ""


@lru_cache(maxsize=256)
def _unusable(expression: str) -> str:
    """Why an expression must not be evaluated, or names what there is not."""
    try:
        parse_expression(expression)
        check_cost({_ATTRIBUTE: expression})
    except AdError as error:
        return error.message
    unknown = [
        each.name
        for each in references(expression)
        if each.name.lower() not in _KNOWN or each.scope == "target"
    ]
    if unknown:
        return f"SUCCESS WHEN knows {', '.join(COUNTS)}, not {unknown[0][:80]}"
    return ""
