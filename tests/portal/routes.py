"""Every address pattern of the portal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True, slots=True)
class Route:
    """One address pattern: its full name, and the names of its parameters."""

    name: str
    parameters: frozenset[str]


def routes() -> list[Route]:
    """All of them. Two patterns without a name are told apart by their text."""
    return list(_walk(get_resolver().url_patterns, ""))


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[Route]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            space = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from _walk(pattern.url_patterns, space)
        else:
            name = pattern.name or f"<{pattern.pattern}>"
            yield Route(
                prefix + name, frozenset(pattern.pattern.converters or ()) | _groups(pattern)
            )


def _groups(pattern: URLPattern) -> frozenset[str]:
    regex = pattern.pattern.regex
    return frozenset(regex.groupindex)
