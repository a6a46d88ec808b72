"""Routes of the portal: every address pattern with its full name, its parameters and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.regex_helper import normalize


@dataclass(frozen=True, slots=True)
class Route:
    """One address pattern: its full name, the names of its parameters, and its text with them."""

    name: str
    parameters: frozenset[str]
    #: To be filled in by `%`, with any values.
    template: str


@cache
def routes() -> Sequence[Route]:
    """All of them. Two patterns without a name are told apart by their text."""
    return tuple(_walk(get_resolver().url_patterns, "", "/"))


def _walk(patterns: list[URLPattern | URLResolver], prefix: str, address: str) -> Iterator[Route]:
    for pattern in patterns:
        (text, _), *_ = normalize(pattern.pattern.regex.pattern)
        if isinstance(pattern, URLResolver):
            space = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from _walk(pattern.url_patterns, space, address + text)
        else:
            name = pattern.name or f"<{pattern.pattern}>"
            parameters = frozenset(pattern.pattern.converters or ()) | _groups(pattern)
            yield Route(prefix + name, parameters, address + text)


def _groups(pattern: URLPattern) -> frozenset[str]:
    regex = pattern.pattern.regex
    return frozenset(regex.groupindex)
