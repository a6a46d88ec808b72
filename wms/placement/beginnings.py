"""Beginnings of attempts: addresses, the way that is gone, why, and the row that tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wms.placement.addresses import scheme_of, with_scheme
from wms.placement.catalogue.resolving import Resolved, resolve
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.states import RequestKind
from wms.placement.ways.choosing import Chooser, Offered
from wms.placement.ways.ends import Ends
from wms.placement.ways.records import Way


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt that has begun, with its lease."""

    request_id: int
    number: int
    lease: str
    source_scheme: str
    destination_scheme: str
    #: Its addresses; what is to be removed of a logical name; why it fails at once.
    resolved: Resolved
    #: As it was before: what an attempt needs of it does not change.
    request: PlacementRequest = field(repr=False)
    #: Of a transfer: the storages that it uses, or hosts.
    ends: tuple[str, str] = ("", "")
    #: Why this way, where there was more than one.
    choice: dict[str, Any] | None = None


def begun_attempt(request: PlacementRequest, lease: str, chooser: Chooser) -> Started:
    """The next attempt of a request: its addresses, the way that it goes, and why."""
    number = request.attempt_number + 1
    resolved = resolve(request, number, chooser)
    pairs = [(scheme_of(resolved.source_url), scheme_of(resolved.destination_url))]
    pairs += [_pair(text) for text in request.alternatives]
    if request.kind != RequestKind.TRANSFER:
        return Started(request.pk, number, lease, *pairs[0], resolved, request)
    offered = [_offered(resolved, request, pair, chooser.ends) for pair in pairs]
    chosen = chooser.choose(request, number, offered)
    ends = (offered[chosen.place].way.source_end, offered[chosen.place].way.destination_end)
    choice = resolved.choice or chosen.facts
    return Started(
        request.pk, number, lease, *pairs[chosen.place], resolved, request, ends, choice
    )  # fmt: skip


def _offered(
    resolved: Resolved, request: PlacementRequest, pair: tuple[str, str], ends: Ends
) -> Offered:
    """The way of a transfer by a pair of schemes; under another scheme it may have other ends."""
    source, destination = resolved.source_url, resolved.destination_url
    source_end = ends.name_with_scheme(
        with_scheme(source, pair[0]), pair[0], source, resolved.source_storage_id
    )
    destination_end = ends.name_with_scheme(
        with_scheme(destination, pair[1]), pair[1], destination, request.destination_storage_id
    )
    return Offered(Way(source_end, destination_end, *pair), request.source_url)


def facts_of(begun: Started) -> dict[str, int | str]:
    """Facts of the event that an attempt has begun."""
    facts: dict[str, int | str] = {"attempt": begun.number}
    source, destination = begun.source_scheme, begun.destination_scheme
    if source:
        is_transfer = begun.request.kind == RequestKind.TRANSFER
        facts["schemes"] = f"{source}-{destination}" if is_transfer else source
    return facts


def attempt_row(begun: Started, now: datetime, *, lease_until: datetime) -> PlacementAttempt:
    """The row of an attempt that begins now."""
    request, resolved = begun.request, begun.resolved
    return PlacementAttempt(
        request=request,
        number=begun.number,
        source_scheme=begun.source_scheme,
        destination_scheme=begun.destination_scheme,
        source_url=_if_other(resolved.source_url, request.source_url),
        destination_url=_if_other(resolved.destination_url, request.destination_url),
        source_end=begun.ends[0],
        destination_end=begun.ends[1],
        choice=begun.choice,
        started_at=now,
        lease=begun.lease,
        lease_until=lease_until,
    )


def _if_other(url: str, named: str) -> str:
    return "" if url == named else url


def _pair(text: str) -> tuple[str, str]:
    source, _, destination = text.partition("-")
    return source, destination
