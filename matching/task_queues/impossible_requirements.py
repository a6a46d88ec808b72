"""Faults of constant expressions (Requirements, policies): never boolean, or never true.

Constant is an expression whose value no other ad can change. For jobs, DAGs and sites.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import classad2

from matching.ads.classads import build_ad, evaluate, parse_expression

#: What has another value later, so that nothing can be concluded from its value now.
_CHANGING = re.compile(
    r"\b(?:time|currenttime|random|formattime|splittime|userhome)\b", re.IGNORECASE
)


def constant_fault(text: str, attributes: Mapping[str, str]) -> str:
    """Why an expression is never boolean; empty when it is, or depends on a site.

    `attributes` are those of its own ad, all of them parsed before.
    """
    value = _constant(text, attributes)
    if value is None or isinstance(value, bool):
        return ""
    if value is classad2.Value.Undefined:
        return "it is undefined"
    if value is classad2.Value.Error:
        return "it is an error"
    return f"it is {_shown(value)}, which is neither true nor false"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, classad2.ClassAd):
        return "a nested ad"
    text = classad2.quote(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def never_true(text: str, attributes: Mapping[str, str]) -> str:
    """Why Requirements can never be true; empty when they can, or when that depends on a site."""
    if _constant(text, attributes) is False:
        return "it is false"
    return constant_fault(text, attributes)


def _constant(text: str, attributes: Mapping[str, str]) -> Any:
    """Value of an expression if no other ad can change it; None otherwise."""
    if any(_CHANGING.search(each) for each in (text, *attributes.values())):
        return None
    ad = build_ad(attributes)
    try:
        value = ad.flatten(parse_expression(text))
    except (classad2.ClassAdException, UnicodeDecodeError):
        # Too deep for the library, or a string that is not UTF-8; see `classads.evaluate`.
        return classad2.Value.Error
    if not isinstance(value, classad2.ExprTree):
        return value
    try:
        # The library lists one empty name where there is none.
        is_constant = not any(ad.externalRefs(value))
    except ValueError:
        # It does not want to tell what this refers to.
        return None
    return evaluate(value, ad) if is_constant else None
