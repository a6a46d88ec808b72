"""Expansion of references in submit descriptions: `$ENV(NAME)`, `$$(Attr)` and `$$([expression])`.

`$ENV` is an environment variable; `$$` is an attribute of the site that the job runs at, or a value
of an expression on the job's own ad and the site's. Syntax and meaning are HTCondor's, with
`$ENV(NAME:default)`, `$$(Attr:default)` and `$$(DOLLARDOLLAR)`. Macros, whose values may use
references, are expanded before, by `matching.descriptions.macros`. References are expanded once,
from left to right: inserted values are not expanded again. Also tells whether a text has macros or
references, lists its references, and finds their faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression

_T = TypeVar("_T")
_REFERENCE = re.compile(
    r"\$\$\((?:\[(?P<expression>.{0,1000}?)\]"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<default>[^()]*))?)\)"
    r"|\$(?i:ENV)\((?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<otherwise>[^()]*))?\)"
)
#: How an expression begins that needs the DAG's own ad as well.
EXPRESSION_OPENING = "$$(["
#: Everything that looks like a macro, the kinds that are not understood included.
_ANY_MACRO = re.compile(r"\$[$A-Za-z_]*\(")
#: A value is at most this long, before and after its macros are filled in.
MAX_TEXT_LENGTH = 128 * 1024


@dataclass(frozen=True, slots=True)
class Undefined(ValueError):
    """A reference without value and without default."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}({self.name}) is not defined and has no default"


def uses_macros(text: str) -> bool:
    """Whether a text has something like `$(x)`, `$$(x)` or `$ENV(x)`; a lone `$` is none."""
    return _ANY_MACRO.search(text) is not None


def refers_to_site(text: str) -> bool:
    """Whether a text has a reference that `expand_references` would replace."""
    return _REFERENCE.search(text) is not None


def refers_to_environment(text: str) -> bool:
    """Whether a text has a reference `$ENV(NAME)`."""
    return any(found["variable"] is not None for found in _REFERENCE.finditer(text))


@dataclass(frozen=True, slots=True)
class Expanded:
    """Text without references, and the values of its `$$(Attr)` as `MATCH_<Attr>`."""

    text: str
    used: dict[str, str]


@dataclass(frozen=True, slots=True)
class OwnAttributes:
    """Attributes of the job's own ad that an expression refers to."""

    expressions: dict[str, str] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates `$$([expression])`: MY is an ad of expressions and values, TARGET one of values.

    Attributes of the single job hide those that MY has for all jobs.
    """

    expressions: Mapping[str, str]
    values: Mapping[str, object]
    target: Mapping[str, object]

    def __call__(self, text: str, own: OwnAttributes | None = None) -> str:
        """Value of the expression as text. Raises AdError, or Undefined without a plain value."""
        own = own or OwnAttributes()
        taken = {name.lower() for name in (*own.expressions, *own.values)}
        expressions = _without(self.expressions, taken) | own.expressions
        check_cost({**expressions, "SubstitutedExpression": text})
        my = build_ad(expressions, _without(self.values, taken) | own.values)
        target = build_ad({}, self.target)
        value = evaluate(parse_expression(text), my, target)
        if isinstance(value, classad2.Value) or not isinstance(value, str | bool | int | float):
            raise Undefined("$$", f"[{text}]")
        return value_text(value)


def _without(attributes: Mapping[str, _T], names: set[str]) -> dict[str, _T]:
    return {name: value for name, value in attributes.items() if name.lower() not in names}


def expand_references(
    text: str,
    *,
    environment: Mapping[str, str],
    target: Mapping[str, object],
    evaluator: Callable[[str], str],
) -> Expanded:
    """Text with `$ENV(NAME)`, `$$(Attr)` and `$$([expression])` replaced, all in one pass.

    Inserted values are not expanded again. Attribute names are case-insensitive. Raises Undefined
    for a reference without value and default, AdError for an expression, and ValueError for values
    that grow beyond MAX_TEXT_LENGTH.
    """
    attributes = {name.lower(): (name, value) for name, value in target.items()}
    used: dict[str, str] = {}
    made = 0

    def value_of(found: re.Match[str]) -> str:
        if found["variable"] is not None:
            name = found["variable"]
            return _given("$ENV", name, environment.get(name, found["otherwise"]))
        if found["expression"] is not None:
            return evaluator(found["expression"])
        name, value = attributes.get(found["name"].lower(), (found["name"], None))
        if name == "DOLLARDOLLAR":
            return "$$"
        text = found["default"] if value is None else value_text(value)
        used[f"MATCH_{name}"] = _given("$$", found["name"], text)
        return used[f"MATCH_{name}"]

    def replace(found: re.Match[str]) -> str:
        nonlocal made
        value = value_of(found)
        made += len(value)
        if made > MAX_TEXT_LENGTH:
            raise ValueError(f"references expand to more than {MAX_TEXT_LENGTH} characters")
        return value

    return Expanded(_REFERENCE.sub(replace, text), used)


def without_references(text: str, stand_in: str) -> str:
    """The text with the same words in place of each reference, for what is not known yet."""
    return _REFERENCE.sub(lambda _: stand_in, text)


def referred(text: str) -> list[tuple[str, str]]:
    """Names of `$$(Attr)` without default, and expressions of `$$([...])`."""
    found = _REFERENCE.finditer(text)
    return [
        (each["name"] or "", each["expression"] or "")
        for each in found
        if each["default"] is None and each["variable"] is None and each["name"] != "DOLLARDOLLAR"
    ]


def _given(kind: str, name: str, value: str | None) -> str:
    if value is None:
        raise Undefined(kind, name)
    return value


def reference_fault(text: str) -> str:
    """Fault in a `$$([expression])` of the text, as far as its macros are known; or empty."""
    for found in _REFERENCE.finditer(text):
        expression = found["expression"]
        if expression is None or "$" in expression:
            continue
        try:
            parse_expression(expression)
            check_cost({"SubstitutedExpression": expression})
        except AdError as error:
            return f"$$([{expression}]): {error.message}"
    if EXPRESSION_OPENING in _REFERENCE.sub("", text):
        return f"{EXPRESSION_OPENING} is not closed by ]) within 1000 characters"
    return ""


def value_text(value: object) -> str:
    """ClassAd value as it is written in a submit description."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
