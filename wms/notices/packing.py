"""Packing of notices into messages: at once, as a summary of a flood, or as a digest.

Pure functions: the same input gives the same packets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

#: In this time there is at most one message about an object, and this number in all.
WINDOW = timedelta(minutes=15)
BURST = 5


@dataclass(frozen=True, slots=True)
class Daily:
    """Hour and time zone of daily digests."""

    hour: int = 7
    zone: str = "UTC"


USUAL = Daily()


@dataclass(frozen=True, slots=True)
class PendingNotice:
    """A notice that was not sent yet: its id, its object, and the time since when it waits."""

    id: int
    thread: str
    since: datetime


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that was sent: its object (empty: several), and the time of its packing."""

    thread: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Packet:
    """Notices of one message; `thread` is empty where they are about several objects."""

    ids: tuple[int, ...]
    thread: str = ""


def packets(
    pace: str,
    waiting: Sequence[PendingNotice],
    recent: Sequence[SentMessage],
    now: datetime,
    daily: Daily = USUAL,
) -> list[Packet]:
    """Messages to be sent now by a channel of this pace: now, hourly or daily."""
    if not waiting:
        return []
    if pace == "now":
        return _at_once(waiting, recent, now)
    is_due = now >= _next_digest(pace, min(each.since for each in waiting), daily)
    return [Packet(tuple(each.id for each in waiting))] if is_due else []


def _at_once(
    waiting: Sequence[PendingNotice], recent: Sequence[SentMessage], now: datetime
) -> list[Packet]:
    """The first of each object, as long as there is room; a flood later, as one summary."""
    latest = [each for each in recent if each.at > now - WINDOW]
    quiet = {each.thread for each in latest if each.thread}
    by_thread: dict[str, list[PendingNotice]] = {}
    for notice in waiting:
        if notice.thread not in quiet:
            by_thread.setdefault(notice.thread, []).append(notice)
    room = max(0, BURST - len(latest))
    is_overdue = any(each.since <= now - WINDOW for held in by_thread.values() for each in held)
    if len(by_thread) > room and is_overdue:
        return [_packed(by_thread)]
    return [_packed({thread: by_thread[thread]}) for thread in list(by_thread)[:room]]


def _packed(by_thread: Mapping[str, Sequence[PendingNotice]]) -> Packet:
    ids = sorted(each.id for held in by_thread.values() for each in held)
    return Packet(tuple(ids), next(iter(by_thread)) if len(by_thread) == 1 else "")


def _zone(name: str) -> tzinfo:
    """The time zone of this name; UTC where the host does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _next_digest(pace: str, since: datetime, daily: Daily) -> datetime:
    """Time of the digest that has what happened at `since`."""
    if pace == "hourly":
        return since.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    zone = _zone(daily.zone)
    today = datetime.combine(since.astimezone(zone).date(), time(daily.hour), zone)
    tomorrow = datetime.combine(today.date() + timedelta(days=1), time(daily.hour), zone)
    # By the clock of the world: days on which a zone changes its own are not 24 hours long.
    due = today if since < today.astimezone(UTC) else tomorrow
    return due.astimezone(UTC)
