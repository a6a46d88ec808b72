"""Words for the choice of a way, from the codes and figures that were noted with an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wms.placement.ways.ordering import Why

_WORDS: Final[Mapping[str, str]] = {
    Why.OWN_ORDER: "in the order of the request",
    Why.RECORD: "for its record",
    Why.UNTRIED: "as it has not been tried of late",
    Why.AIMED: "as chosen when it was put into the queue",
}


def told_choice(choice: Mapping[str, Any] | None) -> str:
    """The choice in words, the way that was taken first; empty where there was none."""
    ways = choice["ways"] if choice else []
    if choice is None or not ways:
        return ""
    first, *others = ways
    words = _WORDS.get(choice["cause"], choice["cause"])
    told = f"{_name(first)} was tried first of those left, {words}: {_record(first)}"
    return "; ".join([told, *(f"{_name(each)}: {_record(each)}" for each in others)])


def _name(way: Mapping[str, Any]) -> str:
    pair = f"{way['source_scheme']}-{way['destination_scheme']}"
    return f"{way['source_end']} to {way['destination_end']} by {pair}"


def _record(way: Mapping[str, Any]) -> str:
    if not way["tries"]:
        return "not tried within a day"
    rate = way["bytes_per_s"]
    fast = "" if rate is None else f" at {rate / 2**20:.3g} MiB/s"
    long_ago = ", long ago" if way["is_untried"] else ""
    return f"{way['successes']} of {way['tries']} within a day went well{fast}{long_ago}"
