"""Literals in the texts of ClassAd expressions: strings, numbers and truth values."""

from __future__ import annotations

import re
from typing import TypeGuard

import classad2

from matching.ads.classads import quote

LITERAL = re.compile(
    r'(?P<string>"(?:\\.|[^"\\])*")|(?<![\w.])(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])'
    r"|\b(?P<truth>true|false)\b",
    re.IGNORECASE,
)
Literal = str | int | float | bool


def literals_in(text: str) -> list[Literal]:
    """Values of all literals in an expression's text, in their order."""
    return [
        value for found in LITERAL.finditer(text) if (value := literal_value(found)) is not None
    ]


def literal_value(found: re.Match[str]) -> Literal | None:
    """Value of a match of `LITERAL`; None for a string that cannot be read."""
    if found["string"]:
        try:
            return str(classad2.unquote(found["string"]))
        except UnicodeDecodeError:
            return None
    if found["truth"]:
        return found["truth"].lower() == "true"
    text = found["number"]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def literal_text(value: Literal) -> str:
    """Expression that has this value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else repr(value)


def is_literal(value: object) -> TypeGuard[Literal]:
    """Whether the value of an expression could be written as a literal."""
    return isinstance(value, str | bool | int | float) and not isinstance(value, classad2.Value)
