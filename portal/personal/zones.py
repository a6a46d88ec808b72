"""Time zone in which a page shows times, times as text in it, zones to choose, and zones by name.

The zone belongs to the current answer: `shown_in` sets it for the templates rendered inside. It is
not Django's current time zone, in which forms would read input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from portal.personal.models import Preferences

#: The browser's own zone: pages say UTC, and a script turns that into it.
BROWSER = "browser"
_NAME = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_current: ContextVar[str] = ContextVar("zone", default="UTC")


@cache
def zone_names() -> tuple[str, ...]:
    """The zones that can be chosen, UTC first."""
    cities = sorted(name for name in available_timezones() if "/" in name)
    return ("UTC", BROWSER, *(name for name in cities if not name.startswith(("Etc/", "posix"))))


@contextmanager
def shown_in(preferences: Preferences) -> Iterator[None]:
    """Show times as the user wants them."""
    token = _current.set(preferences.time_zone)
    try:
        yield
    finally:
        _current.reset(token)


def in_words(moment: datetime) -> tuple[str, str]:
    """The moment, and the name of its zone."""
    local = moment.astimezone(_zone(_current.get()))
    return f"{local:%Y-%m-%d %H:%M:%S}", local.tzname() or "UTC"


def zone_named(name: str) -> ZoneInfo | None:
    """The zone of this name, by any of the names that it has: a browser may say an old one."""
    if not _NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _zone(name: str) -> tzinfo:
    return UTC if name in {"UTC", BROWSER} else zone_named(name) or UTC
