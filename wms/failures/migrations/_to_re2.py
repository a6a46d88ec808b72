"""Rules as they were written for Python's expressions, rewritten for RE2.

All repeats had to be possessive then: what they took they kept. A plain repeat finds the same if
nothing of what follows could begin within what it takes. What could, finds more than before.
"""

from __future__ import annotations

import importlib
import re
from typing import Any, NamedTuple

import re2

_reader: Any = importlib.import_module("re._parser")
_code: Any = importlib.import_module("re._constants")
_NAMES = ("owner", "site", "host")
_POSSESSIVE = re.compile(r"(?<!\\)((?:\\\\)*)([*+?}])\+")
_CLASS = r"(?:\[(?:\\.|[^\]\\])+\]|\\[wdsWDS]|\\?[^\\()\[\]|*+?{}])"
_BEFORE = re.compile(rf"\(\?<!({_CLASS})\)")
_AFTER = re.compile(rf"\(\?!({_CLASS})\)\Z")
# Of every kind of character that classes tell apart.
_SAMPLE = [chr(code) for code in range(0x250)] + list("\u0416\u4e2d\u2028\u2019\U0001f600")
_REPEATS = (_code.MAX_REPEAT, _code.MIN_REPEAT, _code.POSSESSIVE_REPEAT)
_KEPT = (_code.POSSESSIVE_REPEAT, _code.ATOMIC_GROUP)
#: Parts that take no character.
_ZERO_WIDTH = frozenset({_code.AT, _code.ASSERT, _code.ASSERT_NOT})


class Rewritten(NamedTuple):
    """The expression for RE2, and why it should not be used before somebody looks at it."""

    pattern: str
    fault: str


def rewritten(pattern: str) -> Rewritten:
    """The expression for RE2; one that RE2 cannot read stays as it is, with a fault."""
    plain = _without_possession(_with_context(pattern)).replace(r"\Z", r"\z")
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(_filled(plain), options)
    except re2.error as error:
        told = error.args[0].decode(errors="replace")[:120]
        return Rewritten(pattern, f"RE2, by which rules are read now, cannot read it: {told}.")
    if len(plain) > 400:
        return Rewritten(pattern, "Written for RE2, it has more than 400 characters.")
    if not _is_the_same(pattern):
        fault = "RE2 has no possessive repeats: without them it may find more than before. Try it."
        return Rewritten(plain, fault)
    return Rewritten(plain, "")


def _filled(pattern: str) -> str:
    for name in _NAMES:
        pattern = pattern.replace(f"{{{name}}}", "x")
    return pattern


def _without_possession(pattern: str) -> str:
    """Plain repeats and groups, but nothing changed inside of classes."""
    parts = re.split(r"(\[\^?\]?(?:\\.|[^\]\\])*\])", pattern)
    parts[::2] = [_POSSESSIVE.sub(r"\1\2", part).replace("(?>", "(?:") for part in parts[::2]]
    joined = "".join(parts)
    # A repeat may stand behind a class.
    return re.sub(r"(\])([*+?]|\{[0-9,]+\})\+", r"\1\2", joined)


def _with_context(pattern: str) -> str:
    """Looks at the character before and after as what stands around a group `it`."""
    before, after = _BEFORE.match(pattern), _AFTER.search(pattern)
    if "(?P<it>" in pattern or not (before or after):
        return pattern
    inner = pattern[before.end() if before else 0 : after.start() if after else len(pattern)]
    start = f"(?:^|{_other_than(before[1])})" if before else ""
    end = f"(?:{_other_than(after[1])}|$)" if after else ""
    return f"{start}(?P<it>{inner}){end}"


def _other_than(characters: str) -> str:
    if characters.startswith("[^"):
        return f"[{characters[2:]}"
    return f"[^{characters[1:]}" if characters.startswith("[") else f"[^{characters}]"


def _is_the_same(pattern: str) -> bool:
    """True if no repeat or atomic group could give anything back to what follows it."""
    try:
        return _keeps(list(_reader.parse(_filled(pattern))), [])
    except (re.error, RecursionError, OverflowError):
        return False


def _keeps(parts: list[Any], behind: list[Any], *, is_kept: bool = False) -> bool:
    """True if it finds the same; `is_kept` of what stands inside of something possessive."""
    for at, part in enumerate(parts):
        operation, rest = part[0], [*parts[at + 1 :], *behind]
        inner = [list(each) for each in _inner(part)]
        was_kept = is_kept or operation in _KEPT
        # What is repeated may follow itself.
        if not all(
            _keeps(each, [*(each if operation in _REPEATS else []), *rest], is_kept=was_kept)
            for each in inner
        ):
            return False
        if not was_kept or not inner:
            continue
        if operation is _code.MIN_REPEAT or (operation is _code.BRANCH and _overlap(inner)):
            return False
        if operation is not _code.SUBPATTERN and not _always_fits(rest):
            taken = set().union(*map(_characters, inner))
            if _may_begin_within(rest, taken):
                return False
    return True


def _overlap(branches: list[list[Any]]) -> bool:
    """True if a text may begin as two of the branches do, or an earlier one may be empty."""
    firsts = [_first(each) for each in branches]
    if any(map(_always_fits, branches[:-1])):
        return True
    return len(set().union(*firsts)) < sum(map(len, firsts))


def _may_begin_within(parts: list[Any], taken: set[str]) -> bool:
    """True if parts may fit between two characters of these, or from one of them on."""
    for part in parts:
        operation, value = part
        if operation is _code.AT and value in (_code.AT_END, _code.AT_END_STRING):
            return False
        if operation is _code.AT and value is _code.AT_BOUNDARY:
            return len({re.match(r"\w", each) is None for each in taken}) > 1
        if operation is _code.ASSERT_NOT and value[0] > 0 and len(value[1]) == 1:
            return not taken <= _set(value[1][0])
        if operation in _ZERO_WIDTH or _first([part]) & taken:
            return True
        if not _always_fits([part]):
            return False
    return False


def _inner(part: Any) -> list[Any]:
    operation, value = part
    if operation in _REPEATS:
        return [value[2]]
    if operation is _code.SUBPATTERN:
        return [value[3]]
    if operation is _code.BRANCH:
        return list(value[1])
    return [value] if operation is _code.ATOMIC_GROUP else []


def _always_fits(parts: list[Any]) -> bool:
    """True if the empty text fits, whatever stands around it."""
    return all(
        (operation in _REPEATS and value[0] == 0)
        or (operation is _code.SUBPATTERN and _always_fits(list(value[3])))
        for operation, value in parts
    )


def _first(parts: list[Any]) -> set[str]:
    """With which characters a text that fits may begin; all, where that is not known."""
    found: set[str] = set()
    for part in parts:
        operation = part[0]
        if operation in _ZERO_WIDTH:
            return set(_SAMPLE)
        inner = _inner(part)
        found |= set().union(*(_first(list(each)) for each in inner)) if inner else _set(part)
        is_optional = operation in _REPEATS and part[1][0] == 0
        if not is_optional and not any(_always_fits(list(each)) for each in inner):
            return found
    return found


def _characters(parts: list[Any]) -> set[str]:
    """All characters that parts may take."""
    found: set[str] = set()
    for part in parts:
        inner = _inner(part)
        if inner:
            found |= set().union(*(_characters(list(each)) for each in inner))
        elif part[0] not in _ZERO_WIDTH:
            found |= _set(part)
    return found


def _set(part: Any) -> set[str]:
    """The characters of the sample that one part takes, in either case."""
    operation, value = part
    if operation is _code.LITERAL:
        return {chr(value).lower(), chr(value).upper()}
    if operation is not _code.IN:
        return set(_SAMPLE)
    is_negated = value[0][0] is _code.NEGATE
    taken = {each for each in _SAMPLE if any(_is_in(each, item) for item in value)}
    taken |= {each.lower() for each in taken} | {each.upper() for each in taken}
    return set(_SAMPLE) - taken if is_negated else taken


def _is_in(character: str, item: Any) -> bool:
    operation, value = item
    if operation is _code.LITERAL:
        return ord(character) == value
    if operation is _code.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if operation is _code.CATEGORY:
        return re.match(_CATEGORIES[value], character) is not None
    return False


_CATEGORIES = {
    _code.CATEGORY_DIGIT: r"\d",
    _code.CATEGORY_NOT_DIGIT: r"\D",
    _code.CATEGORY_SPACE: r"\s",
    _code.CATEGORY_NOT_SPACE: r"\S",
    _code.CATEGORY_WORD: r"\w",
    _code.CATEGORY_NOT_WORD: r"\W",
}
