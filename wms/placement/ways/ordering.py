"""Order of the ways of a transfer, by how each did of late; pure.

Ways that do about alike stay in the request's own order: success counts by tenths, rate by
doublings. One of which nothing is known of late is thought to be as good as the best one, so that
one failure of that is enough for it to be tried; besides, some transfers begin with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Less than this weight of attempts, and a way counts as untried: one attempt after 3.3 half-lives.
_LEAST_WEIGHT: Final = 0.1
_TENTHS: Final = 10


class Why(StrEnum):
    """Reason why a way is tried before the others."""

    #: None that is left did better: it comes first in the request, or near the site.
    OWN_ORDER = "own_order"
    #: It did better than those that come before it in the request.
    RECORD = "record"
    #: Nothing was known of it, and this transfer tries such ones first.
    UNTRIED = "untried"
    #: It was chosen when the request was put into the queue; limits were looked at for it.
    AIMED = "aimed"


@dataclass(frozen=True, slots=True)
class Record:
    """Attempts of late on a way; weights are less the older an attempt is."""

    tries: int = 0
    successes: int = 0
    weight: float = 0.0
    good_weight: float = 0.0
    #: Of those that brought a file.
    bytes_per_s: float | None = None

    @property
    def is_untried(self) -> bool:
        """Whether too little is known to judge by."""
        return self.weight < _LEAST_WEIGHT


def order_of_ways(records: Sequence[Record], *, tries_new_ones: bool = False) -> list[int]:
    """The places of ways in the order in which they are to be tried.

    With `tries_new_ones` those that are untried come before all others.
    """
    known = [_doublings(each) for each in records if not each.is_untried]
    fastest = max((each for each in known if each is not None), default=0)
    keys = [_key(each, fastest, tries_new_ones=tries_new_ones) for each in records]
    return sorted(range(len(records)), key=lambda place: (keys[place], place))


def _key(record: Record, fastest: int, *, tries_new_ones: bool) -> tuple[bool, int, int]:
    if record.is_untried:
        return (not tries_new_ones, -_TENTHS, -fastest)
    # As if one more had gone well: a single failure does not put a way behind all others.
    success = (record.good_weight + 1) / (record.weight + 1)
    doublings = _doublings(record)
    return (True, -round(_TENTHS * success), -(fastest if doublings is None else doublings))


def _doublings(record: Record) -> int | None:
    """The rate by powers of two; None where nothing is known of it."""
    if not record.bytes_per_s:
        return None
    return round(math.log2(max(record.bytes_per_s, 1.0)))
