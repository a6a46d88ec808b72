"""Critical path of a simulated DAG run: the chain of nodes that determines its duration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """First start and last end of the runs of a node, in microseconds."""

    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """A node of the critical path, its duration, and its wait after the end of its last parent."""

    name: str
    duration_us: int
    waited_us: int


def critical_path(
    spans: Mapping[str, NodeSpan], parents: Mapping[str, Sequence[str]]
) -> list[PathStep]:
    """Critical path to the node that ended last, from each node back to its last parent.

    A node of which nothing ran is replaced by its own parents.
    """
    if not spans:
        return []
    steps: list[PathStep] = []
    name: str | None = max(spans, key=lambda node: (spans[node].end_us, spans[node].start_us))
    while name is not None:
        span = spans[name]
        last = _last_ended(_nearest_ancestors(name, spans, parents), spans)
        began_us = spans[last].end_us if last is not None else 0
        steps.append(PathStep(name, span.end_us - span.start_us, max(span.start_us - began_us, 0)))
        name = last
    return steps[::-1]


def _last_ended(names: Sequence[str], spans: Mapping[str, NodeSpan]) -> str | None:
    return max(names, key=lambda name: spans[name].end_us, default=None)


def _nearest_ancestors(
    name: str, spans: Mapping[str, NodeSpan], parents: Mapping[str, Sequence[str]]
) -> list[str]:
    """The nearest ancestors of which something ran."""
    ancestors, seen, queue = [], {name}, list(parents.get(name, ()))
    while queue:
        parent = queue.pop()
        if parent in seen:
            continue
        seen.add(parent)
        if parent in spans:
            ancestors.append(parent)
        else:
            queue += parents.get(parent, ())
    return ancestors
