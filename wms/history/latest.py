"""Selector of the latest samples of series, as they are at the moment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from matching.round_robin_archives import ARCHIVES
from wms.history.sql import READ_LATEST

#: What was sampled longer ago tells nothing of this moment.
_LOOKS_BACK = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a series, and when it was sampled."""

    value: float
    sampled_at: datetime


def latest_samples(names: Collection[str], *, now: datetime) -> dict[str, Sample]:
    """The latest sample of each series of the last minutes. One query, of four bins for each."""
    finest, since = ARCHIVES[0], now - _LOOKS_BACK
    parameters: dict[str, Any] = {
        "names": list(names),
        "slots": finest.slots_of(since, now),
        "since": finest.start_of(since),
    }
    with connection.cursor() as cursor:
        cursor.execute(READ_LATEST, parameters)
        return {name: Sample(value, at) for name, value, at in cursor.fetchall()}
