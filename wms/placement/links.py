"""Links between storages: how transfers went of late, how many wait, and what failed last.

A link goes from a storage, or a host that is in none, to another. What is read is bounded: the
latest attempts of a day, and the oldest requests that have not ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F, FilteredRelation, Q, QuerySet

from wms.core.models import User
from wms.placement.addresses import host_of
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.selectors import visible_requests
from wms.placement.states import WAITING, RequestKind, RequestState
from wms.placement.ways.ends import ELSEWHERE

#: So long ago attempts count.
PERIOD: Final = timedelta(days=1)
_MOST_ATTEMPTS: Final = 10_000
_MOST_REQUESTS: Final = 10_000


@dataclass(slots=True)
class Link:
    """Transfers from one storage or host to another within the period, and now."""

    source: str
    destination: str
    attempts: int = 0
    successes: int = 0
    moved_bytes: int = 0
    moved_s: float = 0.0
    running: int = 0
    waiting: int = 0
    last_error: str = ""
    last_error_at: datetime | None = None
    last_error_request: int | None = None

    @property
    def success_rate(self) -> float | None:
        """Part of the attempts that succeeded; None without any."""
        return self.successes / self.attempts if self.attempts else None

    @property
    def bytes_per_s(self) -> float | None:
        """Mean throughput of attempts that brought a file."""
        return self.moved_bytes / max(self.moved_s, 0.001) if self.successes else None


@dataclass(frozen=True, slots=True)
class Links:
    """Links by name; `is_cut` where there were more attempts or requests than are counted."""

    since: datetime
    links: Sequence[Link] = field(default_factory=list)
    is_cut: bool = False


def links_seen_by(user: User, now: datetime) -> Links:
    """Links of the transfers that the user may see. Two queries."""
    since = now - PERIOD
    seen = visible_requests(user).filter(kind=RequestKind.TRANSFER)
    found: dict[tuple[str, str], Link] = {}
    attempts = _count_attempts(found, seen, since)
    requests = _count_requests(found, seen)
    links = [found[ends] for ends in sorted(found)]
    return Links(since, links, attempts >= _MOST_ATTEMPTS or requests >= _MOST_REQUESTS)


def _link(found: dict[tuple[str, str], Link], source: str, destination: str) -> Link:
    return found.setdefault((source, destination), Link(source, destination))


def _count_attempts(
    found: dict[tuple[str, str], Link], seen: QuerySet[PlacementRequest], since: datetime
) -> int:
    """Count the attempts that ended, the latest first; how many there were."""
    # Those that were removed or whose service was lost tell nothing of a link.
    ended = PlacementAttempt.objects.filter(
        ended_at__gte=since, exit_code__gte=0, request__in=seen
    ).order_by("-ended_at")
    rows = list(
        ended.values(
            "request_id", "exit_code", "message", "size_bytes", "started_at", "ended_at",
            named_source=F("request__source_url"), named_destination=F("request__destination_url"),
            used_source=F("source_url"), used_destination=F("destination_url"),
            from_end=F("source_end"), to_end=F("destination_end"),
            source=F("request__source_storage__name"),
            destination=F("request__destination_storage__name"),
        )[:_MOST_ATTEMPTS]
    )  # fmt: skip
    for row in rows:
        _add(_link(found, *_ends_of(row)), row)
    return len(rows)


def _ends_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """The ends that an attempt used; of an old one without any those of its request."""
    if row["from_end"]:
        return row["from_end"], row["to_end"]
    return (
        row["source"] or _host(row["used_source"] or row["named_source"]),
        row["destination"] or _host(row["used_destination"] or row["named_destination"]),
    )


def _add(link: Link, row: Mapping[str, Any]) -> None:
    link.attempts += 1
    if row["exit_code"] == 0:
        link.successes += 1
        link.moved_bytes += row["size_bytes"] or 0
        link.moved_s += (row["ended_at"] - row["started_at"]).total_seconds()
    elif link.last_error_at is None:
        link.last_error, link.last_error_at = row["message"], row["ended_at"]
        link.last_error_request = row["request_id"]


def _count_requests(found: dict[tuple[str, str], Link], seen: QuerySet[PlacementRequest]) -> int:
    """Count the requests that run and that wait, the oldest; how many there were."""
    alive = seen.filter(state__in=[RequestState.PROCESSING, *WAITING]).order_by("pk")
    running = FilteredRelation("attempts", condition=Q(attempts__exit_code=None))
    rows = alive.annotate(running=running).values_list(
        "state", "source_url", "destination_url", "source_storage__name",
        "destination_storage__name", "running__source_end", "running__destination_end",
    )[:_MOST_REQUESTS]  # fmt: skip
    count = 0
    for state, source_url, destination_url, source, destination, used, used_to in rows:
        link = _link(
            found,
            used or source or _host(source_url),
            used_to or destination or _host(destination_url),
        )
        if state == RequestState.PROCESSING:
            link.running += 1
        else:
            link.waiting += 1
        count += 1
    return count


def _host(url: str) -> str:
    """The host of an address; of a logical name that leads nowhere yet there is none."""
    return host_of(url) or ELSEWHERE
