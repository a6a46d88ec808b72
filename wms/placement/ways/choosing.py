"""Choice of the way of an attempt: one not yet used in this round, the best of these by its record.

A round has as many attempts as the request has ways, so that each is used once in it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.ways.ends import Ends
from wms.placement.ways.ordering import Record, Why, order_of_ways
from wms.placement.ways.records import Way, records_of

#: One of so many transfers tries a way first of which nothing is known, by its addresses.
_NEW_ONES_OF: Final = 10
#: So many ways are written down.
_TOLD: Final = 20


class Offered(NamedTuple):
    """A way that a request may go, and the address from which it reads."""

    way: Way
    source_url: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The place of the chosen way among those offered, and why; without facts there was but one."""

    place: int
    facts: dict[str, Any] | None = None


class Chooser:
    """Chooser of the ways of attempts that begin together: each record is read once."""

    def __init__(self, now: datetime, ends: Ends | None = None) -> None:
        self.ends = ends or Ends()
        self._now = now
        self._records: dict[Way, Record] = {}

    def choose(
        self,
        request: PlacementRequest,
        number: int,
        offered: Sequence[Offered],
        aimed: Sequence[int] = (),
    ) -> Chosen:
        """The way of the attempt of this number; of the `aimed` places one, where there are any."""
        if len(offered) == 1:
            return Chosen(0)
        records = self._records_of([each.way for each in offered])
        new_ones = tries_new_ones(request.source_url, request.destination_url)
        order = order_of_ways(records, tries_new_ones=new_ones)
        used = _used(request, number, len(offered))
        left = [place for place in order if _key(request, offered[place]) not in used] or order
        place = next((each for each in left if each in aimed), None)
        place = next((each for each in order if each in aimed), left[0]) if place is None else place
        cause = _cause(place, left, records, new_ones=new_ones)
        return Chosen(place, _facts(cause, place, order, offered, records))

    def _records_of(self, ways: Sequence[Way]) -> list[Record]:
        new = [each for each in ways if each not in self._records]
        if new:
            self._records |= records_of(new, self._now)
        return [self._records[each] for each in ways]


def tries_new_ones(source_url: str, destination_url: str) -> bool:
    """Whether a transfer tries untried ways first: the same ones of all do, again and again."""
    return zlib.crc32(f"{source_url} {destination_url}".encode()) % _NEW_ONES_OF == 0


def _used(request: PlacementRequest, number: int, ways: int) -> set[str]:
    """Ways that the attempts of this round before this one used."""
    position = (number - 1) % ways
    if not position:
        return set()
    before = PlacementAttempt.objects.filter(
        request=request, number__gte=number - position, number__lt=number
    ).order_by()
    rows = before.values_list("source_scheme", "destination_scheme", "source_url")
    return {url or f"{one}-{other}" for one, other, url in rows}


def _key(request: PlacementRequest, offered: Offered) -> str:
    """Key that tells a way from the request's others: the replica that it reads, else its schemes.

    To a logical name each attempt may write by another scheme, whatever it reads.
    """
    if offered.source_url != request.source_url:
        return offered.source_url
    return f"{offered.way.source_scheme}-{offered.way.destination_scheme}"


def _cause(place: int, left: Sequence[int], records: Sequence[Record], *, new_ones: bool) -> Why:
    if place != left[0]:
        return Why.AIMED
    if place == min(left):
        return Why.OWN_ORDER
    return Why.UNTRIED if new_ones and records[place].is_untried else Why.RECORD


def _facts(
    cause: Why,
    place: int,
    order: Sequence[int],
    offered: Sequence[Offered],
    records: Sequence[Record],
) -> dict[str, Any]:
    told = [place, *(each for each in order if each != place)][:_TOLD]
    return {
        "cause": cause.value,
        "ways": [
            {**offered[each].way._asdict(), **_figures(records[each])} for each in told
        ],
    }  # fmt: skip


def _figures(record: Record) -> dict[str, Any]:
    return {
        "tries": record.tries,
        "successes": record.successes,
        "bytes_per_s": record.bytes_per_s,
        "is_untried": record.is_untried,
    }
