"""Regular expressions that cannot take long, whatever the text: checked before one is stored.

What makes an expression slow is going back: a repeat that gives some of its text away again, so
that the rest is tried anew. So `*`, `+` and the like have to be possessive (`*+`, `++`): what they
took they keep. What is left to try are a few alternatives for each place in a bounded text.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

# Python's own reader of expressions: it has no public name, and nothing else tells repeats apart.
_reader: Any = importlib.import_module("re._parser")
_code: Any = importlib.import_module("re._constants")

MAX_PATTERN = 400
#: In how many ways a part of an expression may be tried at one place of the text.
MAX_WAYS = 64
#: So deep may repeats, atomic groups and looks ahead stand in one another.
MAX_DEPTH = 5
#: What an expression may say for the names of what failed, to be filled in for each failure.
NAMES = ("owner", "site", "host")
_NO_WORD = "(?!)"


class BadPattern(ValueError):
    """The expression cannot be read, or could take long."""


def check_pattern(pattern: str) -> None:
    """Raise BadPattern, with what to write instead, unless the expression is safe to use."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"An expression has at most {MAX_PATTERN} characters.")
    if not pattern:
        raise BadPattern("Give an expression.")
    filled = fill_in(pattern, {name: "x" for name in NAMES})
    try:
        tree = _reader.parse(filled)
        compiled = re.compile(filled)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadPattern(f"This is no regular expression: {error}.") from error
    if _ways(tree) > MAX_WAYS:
        raise BadPattern(
            f"It could be tried in more than {MAX_WAYS} ways at one place of a message: put "
            "alternatives into an atomic group (?>...), and make repeats possessive: ?+, {m,n}+."
        )
    if compiled.match("") is not None or tree.getwidth()[0] == 0:
        raise BadPattern("It fits an empty text, so it would be found everywhere.")


def fill_in(pattern: str, names: dict[str, str]) -> str:
    """The expression with `{owner}`, `{site}` and `{host}` as what they are called, literally."""
    for name in NAMES:
        if f"{{{name}}}" in pattern:
            value = names.get(name, "")
            pattern = pattern.replace(f"{{{name}}}", re.escape(value) if value else _NO_WORD)
    return pattern


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """The expression, ready for use."""
    return re.compile(pattern)


def _ways(parts: Iterable[tuple[Any, Any]], depth: int = 0) -> int:
    """In how many ways a sequence can be tried, at most. Raises BadPattern."""
    product = 1
    for operation, value in parts:
        product *= _ways_of(operation, value, depth)
        if product > MAX_WAYS:
            return product
    return product


def _ways_of(operation: Any, value: Any, depth: int) -> int:
    if operation in (_code.GROUPREF, _code.GROUPREF_EXISTS):
        raise BadPattern("It may not refer to its own groups.")
    if operation in (_code.MAX_REPEAT, _code.MIN_REPEAT):
        least, most, inside = value
        return _ways_of_repeat(int(least), most, inside, depth)
    if operation is _code.SUBPATTERN:
        return _ways(value[3], depth)
    if operation is _code.BRANCH:
        return sum(_ways(branch, depth) for branch in value[1])
    parts_of = _INSIDE.get(operation)
    if parts_of is not None:
        _check_inside(parts_of(value), depth + 1)
    return 1


#: What is tried as one and never gone back into, by where its parts are.
_INSIDE: dict[Any, Callable[[Any], Any]] = {
    _code.POSSESSIVE_REPEAT: lambda value: value[2],
    _code.ATOMIC_GROUP: lambda value: value,
    _code.ASSERT: lambda value: value[1],
    _code.ASSERT_NOT: lambda value: value[1],
}


def _check_inside(parts: Any, depth: int) -> None:
    """What is tried as one may have its own ways, but not too many. Raises BadPattern."""
    if depth > MAX_DEPTH:
        raise BadPattern(f"Its groups and repeats stand more than {MAX_DEPTH} deep in one another.")
    if _ways(parts, depth) > MAX_WAYS:
        raise BadPattern(f"A part of it could be tried in more than {MAX_WAYS} ways.")


def _ways_of_repeat(least: int, most: Any, parts: Any, depth: int) -> int:
    inside = _ways(parts, depth)
    if most is _code.MAXREPEAT:
        raise BadPattern("Make repeats possessive: write *+ for *, ++ for + and {2,}+ for {2,}.")
    # More than ten times is too much as soon as there are two ways each time.
    ways = int(inside ** min(int(most), 10))
    return min((int(most) - least + 1) * ways, MAX_WAYS + 1)
