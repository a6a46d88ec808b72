"""Template filters for drawings of a DAG: rest of a number, count by name, extent of stretches."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.filter
def less(value: int, other: int) -> int:
    """Rest of a number, never below zero."""
    return max(value - other, 0)


@register.filter
def of(counts: Any, name: str) -> int:
    """Count with this name; 0 if it is missing."""
    return int(counts.get(name, 0))


@register.filter
def reach(spans: list[tuple[float, float, Any]]) -> float:
    """From the start of the first of some stretches to the end of the last."""
    return round(max(x + width for x, width, _ in spans) - spans[0][0], 3) if spans else 0.0
