"""Values of rows of an archive: times as texts in UTC, URLs without what may be signed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def plain(value: Any) -> Any:
    """The value as JSON has it; a time as the API writes it."""
    return utc_text(value) if isinstance(value, datetime) else value


def utc_text(at: datetime) -> str:
    """A time in UTC, such as `2026-11-20T17:30:00.125000Z`: texts have the order of the times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def without_query(name: str) -> str:
    """A URL without its query; what is no URL stays as it is."""
    return name.partition("?")[0] if "://" in name else name
