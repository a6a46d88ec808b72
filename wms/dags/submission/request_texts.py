"""Texts of DATA nodes with their macros and references expanded.

Macros are the VARS of the node and the names that DAGMan defines; `$ENV(...)` and `$$(...)` are
values of the site at which the DAG is. What a value brings stays in its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from matching.ads.classads import AdError
from matching.descriptions.macros import MacroError, Scopes, parse_template
from matching.descriptions.substitution import (
    expand_references,
    uses_macros,
    value_text,
    without_references,
)
from wms.core.errors import InvalidInput
from wms.placement.request_ad import NOT_YET

#: What would end a text in quotes, or an attribute.
_BREAKING = re.compile(r'["\\\x00-\x1f\x7f]')
#: What DAGMan defines and a check before the run does not know.
_KNOWN_LATE = ("dagmanjobid", "retry", "dag_status", "failed_count")


@dataclass(frozen=True, slots=True)
class NodeValues:
    """VARS of a node by name: those before the description, and those that win over it."""

    name: str
    variables: Mapping[str, str]
    appended: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SiteReferences:
    """Values of `$ENV(...)` and `$$(...)` at the site of a DAG."""

    environment: Mapping[str, str]
    attributes: Mapping[str, object]
    evaluator: Callable[[str], str]


def checked_text(text: str, node: NodeValues) -> str:
    """The text of a node as far as it is known before the run. Raises InvalidInput.

    `NOT_YET` stands for the rest, a name that has no value in an ad.
    """
    if not uses_macros(text):
        return text
    return without_references(_filled(text, node, dict.fromkeys(_KNOWN_LATE, NOT_YET)), NOT_YET)


def final_text(text: str, node: NodeValues, late: Mapping[str, str], site: SiteReferences) -> str:
    """The text of a node at its site; `late` are what DAGMan defines. Raises InvalidInput."""
    if not uses_macros(text):
        return text
    made = _filled(text, node, {name.lower(): value for name, value in late.items()})
    try:
        return expand_references(
            made,
            environment={n: v for n, v in site.environment.items() if not _BREAKING.search(v)},
            target={
                n: v for n, v in site.attributes.items() if not _BREAKING.search(value_text(v))
            },
            evaluator=lambda expression: _whole(site.evaluator(expression)),
        ).text
    except AdError as error:
        raise InvalidInput.of(error.message) from None
    except ValueError as error:
        raise InvalidInput.of(str(error)) from None


def _whole(value: str) -> str:
    if _BREAKING.search(value):
        raise ValueError(f"{value[:80]!r} cannot stand in an ad")
    return value


def _filled(text: str, node: NodeValues, late: Mapping[str, str]) -> str:
    """The text with its macros expanded; later ones of these layers give way to earlier ones."""
    named = {"job": node.name, "node": node.name, **late}
    layers = [
        {name.lower(): value for name, value in layer.items() if not name.startswith("+")}
        for layer in (node.appended, node.variables)
    ]
    try:
        return Scopes(*layers, named).expand(parse_template(text))
    except MacroError as error:
        raise InvalidInput.of(str(error)) from None
