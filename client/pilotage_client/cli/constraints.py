"""Constraints of lists: expressions over the fields of an object, written as in HTCondor.

`state == "failed" && nodes.total > 100`. Words are compared without regard to case by `==`, exactly
by `=?=`. A field that an object does not have is undefined, and a comparison with it is not true.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UsageError

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<name>[A-Za-z_][\w.]*)"""
    r"""|(?P<sign>=\?=|=!=|&&|\|\||[=!<>]=|[<>!()-]))""",
    re.DOTALL,
)
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "undefined": None}
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
Values = Mapping[str, Any]
Expression = Callable[[Values], Any]


def constraint(text: str) -> Callable[[Values], bool]:
    """Whether the expression is true of an object. Raises UsageError."""
    expression = _Parser(text).parsed()
    return lambda values: expression(values) is True


def field_of(values: Values, name: str) -> Any:
    """Field by its dotted name, in any case; None if there is none."""
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        if part not in found:
            part = next((key for key in found if str(key).lower() == part.lower()), part)
        found = found.get(part)
    return found


class _Parser:
    """Reader of one expression, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, at = text, [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._fault(f"`{text[at:].strip()[:20]}` is not understood")
            self._tokens.append((str(match.lastgroup), match[match.lastgroup or 0]))
            at = match.end()

    def parsed(self) -> Expression:
        found = self._either()
        if self._tokens:
            raise self._fault(f"`{self._tokens[0][1]}` is one too many")
        return found

    def _fault(self, what: str) -> UsageError:
        return UsageError(f"The constraint `{self._text}`: {what}.")

    def _takes(self, *signs: str) -> str:
        if self._tokens and self._tokens[0][0] == "sign" and self._tokens[0][1] in signs:
            return self._tokens.pop(0)[1]
        return ""

    def _either(self) -> Expression:
        left = self._both()
        while self._takes("||"):
            left = _or(left, self._both())
        return left

    def _both(self) -> Expression:
        left = self._compared()
        while self._takes("&&"):
            left = _and(left, self._compared())
        return left

    def _compared(self) -> Expression:
        left = self._one()
        if sign := self._takes("==", "!=", "=?=", "=!=", *_ORDERS):
            right = self._one()
            return lambda values: _comparison(sign, left(values), right(values))
        return left

    def _one(self) -> Expression:
        if self._takes("!"):
            inner = self._one()
            return lambda values: _not(inner(values))
        if self._takes("-"):
            negative = self._one()
            return lambda values: _negated(negative(values))
        if self._takes("("):
            inside = self._either()
            if not self._takes(")"):
                raise self._fault("a parenthesis is not closed")
            return inside
        return self._value()

    def _value(self) -> Expression:
        if not self._tokens or self._tokens[0][0] == "sign":
            raise self._fault("a field or a value is missing")
        kind, text = self._tokens.pop(0)
        if kind == "name" and text.lower() not in _WORDS:
            return lambda values: field_of(values, text)
        value: Any = _WORDS.get(text.lower())
        if kind == "text":
            value = re.sub(r"\\(.)", r"\1", text)
        elif kind == "number":
            value = float(text) if "." in text else int(text)
        return lambda values: value


def _or(left: Expression, right: Expression) -> Expression:
    return lambda values: left(values) is True or right(values) is True


def _and(left: Expression, right: Expression) -> Expression:
    return lambda values: left(values) is True and right(values) is True


def _not(value: Any) -> Any:
    return not value if isinstance(value, bool) else None


def _negated(value: Any) -> Any:
    return -value if isinstance(value, (int, float)) else None


def _comparison(sign: str, left: Any, right: Any) -> Any:
    if sign in ("=?=", "=!="):
        is_same = type(left) is type(right) and left == right
        return is_same if sign == "=?=" else not is_same
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.lower(), right.lower()
    if sign in ("==", "!="):
        return (left == right) if sign == "==" else (left != right)
    try:
        return _ORDERS[sign](left, right)
    except TypeError:
        return None
