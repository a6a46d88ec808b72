"""Macros of submit descriptions: `$(name)`, `$ENV(NAME)` and `$$(Attr)`.

Syntax and meaning follow HTCondor's: `$(name:default)`, `$ENV(NAME:default)`, `$$(Attr:default)`,
`$$([expression])` and `$$(DOLLARDOLLAR)`. Every text is expanded once, from left to right: what a
value contains is not looked at again, except for `$(name)`, whose values may use other macros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import classad2

from matching.classads import AdError, parse_expression

_MACRO = re.compile(r"(?<!\$)\$\(([A-Za-z0-9_.+]+)(?::([^()$]*))?\)")
_ENV = re.compile(r"\$ENV\(([A-Za-z_][A-Za-z0-9_]*)(?::([^()]*))?\)", re.IGNORECASE)
_TARGET = re.compile(
    r"\$\$\((?:\[(?P<expression>[^\]]{0,1000})\]"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<default>[^()]*))?)\)"
)
_MAX_DEPTH = 20
#: A value is at most this long, before and after its macros are filled in.
MAX_TEXT_LENGTH = 128 * 1024


@dataclass(frozen=True, slots=True)
class Undefined(ValueError):
    """A macro without value and without default."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}({self.name}) is not defined and has no default"


def expand_macros(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(name)`; names have no case. Values may use macros themselves, to a bounded depth.

    An unknown name without default becomes empty, as in HTCondor. Raises ValueError for a macro
    that uses itself, and for values that grow beyond MAX_TEXT_LENGTH.
    """
    lowered = {name.lower(): value for name, value in values.items()}

    made = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal made
        name, default = found.group(1), found.group(2)
        value = lowered.get(name.lower(), default) or ""
        made += len(value)
        if made > MAX_TEXT_LENGTH:
            raise ValueError(f"macros expand to more than {MAX_TEXT_LENGTH} characters")
        return value

    for _ in range(_MAX_DEPTH):
        expanded = _MACRO.sub(replace, text)
        if expanded == text:
            return text
        text = expanded
    raise ValueError(f"a macro uses itself, or more than {_MAX_DEPTH} are nested: {text[:80]}")


def expand_environment(text: str, environment: Mapping[str, str]) -> str:
    """Replace `$ENV(NAME)` from this environment only. Raises Undefined."""

    def replace(found: re.Match[str]) -> str:
        value = environment.get(found.group(1), found.group(2))
        if value is None:
            raise Undefined("$ENV", found.group(1))
        return value

    return _ENV.sub(replace, text)


def expand_attributes(
    text: str,
    target: Mapping[str, object],
    *,
    evaluate: Callable[[classad2.ExprTree], object] | None = None,
) -> tuple[str, dict[str, str]]:
    """Replace `$$(Attr)` and `$$([expression])` by values of the matched ad `target`.

    Attribute names have no case. Returns the text and what was used, as `MATCH_<Attr>`.
    `evaluate` computes an expression against both ads. Raises Undefined and AdError.
    """
    lowered = {name.lower(): value for name, value in target.items()}
    used: dict[str, str] = {}

    def replace(found: re.Match[str]) -> str:
        if found["expression"] is not None:
            return _evaluated(found["expression"], evaluate)
        name = found["name"]
        if name == "DOLLARDOLLAR":
            return "$$"
        if name.lower() not in lowered:
            return _default(found)
        used[f"MATCH_{name}"] = value_text(lowered[name.lower()])
        return used[f"MATCH_{name}"]

    # One pass over both forms: an inserted value is never expanded again.
    return _TARGET.sub(replace, text), used


def _default(found: re.Match[str]) -> str:
    default: str | None = found["default"]
    if default is None:
        raise Undefined("$$", found["name"])
    return default


def _evaluated(text: str, evaluate: Callable[[classad2.ExprTree], object] | None) -> str:
    if evaluate is None:
        raise AdError(f"an expression cannot be used here: $$([{text[:80]}])")
    value = evaluate(parse_expression(text))
    if isinstance(value, classad2.Value):
        raise Undefined("$$", f"[{text}]")
    return value_text(value)


def value_text(value: object) -> str:
    """A ClassAd value as it appears in a submit description."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
