"""Amounts in placement requests and settings: bytes and seconds with their units."""

from __future__ import annotations

import re
from typing import Final

_AMOUNT = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)\s*")
#: Powers of 1024, as in submit descriptions.
_BYTES: Final = {
    "": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30,
    "t": 2**40, "tb": 2**40,
}  # fmt: skip
_SECONDS: Final = {
    "s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400,
    "week": 604800, "weeks": 604800, "year": 31536000, "years": 31536000,
}  # fmt: skip
#: Bytes are a column of eight bytes.
MAX_BYTES: Final = 2**62


def bytes_of(text: str) -> int:
    """Bytes of an amount such as `200MB`; without a unit they are bytes. Raises ValueError."""
    size = _amount(text, _BYTES, "a size such as 200MB")
    if size >= MAX_BYTES:
        raise ValueError(f"{text.strip()} is more than any storage has")
    return size


def seconds_of(text: str) -> int:
    """Seconds of a time such as `60 minutes`, which needs a unit. Raises ValueError."""
    return _amount(text, _SECONDS, "a time such as 60 minutes")


def _amount(text: str, units: dict[str, int], what: str) -> int:
    found = _AMOUNT.fullmatch(text)
    factor = units.get(found[2].lower()) if found else None
    if found is None or factor is None:
        raise ValueError(f"{text.strip()[:80]!r} is not {what}")
    return round(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor
