"""The critical path of a run: the nodes that decided how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """When something of a node first started and last ended, in microseconds."""

    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Leg:
    """A node of the path: how long it took, and how long it waited after its last parent."""

    name: str
    lasts_us: int
    waited_us: int


def critical_path(spans: Mapping[str, Span], parents: Mapping[str, Sequence[str]]) -> list[Leg]:
    """The path to the node that ended last, each step to the parent that ended last.

    Nodes of which nothing ran are passed over: behind them their own parents count.
    """
    if not spans:
        return []
    legs: list[Leg] = []
    name: str | None = max(spans, key=lambda each: (spans[each].end_us, spans[each].start_us))
    while name is not None:
        span = spans[name]
        last = _last_of(_before(name, spans, parents), spans)
        began_us = spans[last].end_us if last is not None else 0
        legs.append(Leg(name, span.end_us - span.start_us, max(span.start_us - began_us, 0)))
        name = last
    return legs[::-1]


def _last_of(names: Sequence[str], spans: Mapping[str, Span]) -> str | None:
    return max(names, key=lambda name: spans[name].end_us, default=None)


def _before(
    name: str, spans: Mapping[str, Span], parents: Mapping[str, Sequence[str]]
) -> list[str]:
    """The nearest ancestors of which something ran."""
    found, seen, left = [], {name}, list(parents.get(name, ()))
    while left:
        parent = left.pop()
        if parent in seen:
            continue
        seen.add(parent)
        if parent in spans:
            found.append(parent)
        else:
            left += parents.get(parent, ())
    return found
