"""Options of a cluster as a whole, read and checked: name, labels, group, deadline, eager, limits.

The limits are those of materialisation: `max_idle` and `max_materialize`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from wms.accounting.models import AccountingGroup
from wms.accounting.services import group_for
from wms.core.errors import Finding, InvalidInput
from wms.core.labels import checked_labels
from wms.core.models import User
from wms.jobs.models.clusters import DEFAULT_MAX_IDLE, DEFAULT_MAX_MATERIALIZE

NAMES = frozenset(
    {"name", "labels", "group", "deadline", "max_idle", "max_materialize", "eager"}
)  # fmt: skip
MAX_LIMIT = 1_000_000
#: Later ones are mistakes; the latest that there are cannot be shown in all time zones.
MAX_DEADLINE = timedelta(days=36_500)
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
#: Commands of a description that are options of its cluster.
COMMANDS = {
    "batch_name": "name",
    "job_batch_name": "name",
    "accounting_group": "group",
    "max_idle": "max_idle",
    "max_materialize": "max_materialize",
}


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Checked options. `is_eager` is None where nothing is said."""

    name: str = ""
    labels: tuple[str, ...] = ()
    group: AccountingGroup | None = None
    deadline: datetime | None = None
    max_idle: int = DEFAULT_MAX_IDLE
    max_materialize: int = DEFAULT_MAX_MATERIALIZE
    is_eager: bool | None = None


def read_options(given: Mapping[str, Any], *, owner: User) -> tuple[ClusterOptions, list[Finding]]:
    """Options from plain values, and their faults by name."""
    read: dict[str, Any] = {}
    faults: list[Finding] = []
    for name, value in given.items():
        if name not in NAMES:
            faults.append(Finding("there is no such option", field=str(name)[:80]))
            continue
        if value is None or value == "":
            continue
        try:
            read |= _READERS[name](value, owner)
        except InvalidInput as error:
            faults += [Finding(each.message, field=name) for each in error.findings]
        except ValueError as error:
            faults.append(Finding(str(error), field=name))
    return ClusterOptions(**read), faults


def _name(value: object, _owner: User) -> dict[str, Any]:
    if not isinstance(value, str) or len(value) > 255 or _CONTROL.search(value):
        raise ValueError("must be a text of at most 255 characters")
    return {"name": value.strip()}


def _labels(value: object, _owner: User) -> dict[str, Any]:
    return {"labels": checked_labels(value)}


def _group(value: object, owner: User) -> dict[str, Any]:
    if not isinstance(value, str):
        raise ValueError("must be the name of a group")
    return {"group": group_for(owner, value)}


def _deadline(value: object, _owner: User) -> dict[str, Any]:
    at = value if isinstance(value, datetime) else None
    if isinstance(value, str):
        at = parse_datetime(value)
    if at is None or timezone.is_naive(at):
        raise ValueError("must be a time with its zone, such as 2031-05-01T12:00:00Z")
    return {"deadline": check_deadline(at)}


def check_deadline(at: datetime) -> datetime:
    """A deadline with its zone. Raises ValueError."""
    now = timezone.now()
    if at <= now:
        raise ValueError("has passed")
    if at > now + MAX_DEADLINE:
        raise ValueError(f"is more than {MAX_DEADLINE.days // 365} years ahead")
    return at


def check_limit(value: object) -> int:
    """A limit of materialisation. Raises ValueError."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:20])
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"must be a whole number from 1 to {MAX_LIMIT}")
    return value


def _eager(value: object, _owner: User) -> dict[str, Any]:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return {"is_eager": value}


_READERS = {
    "name": _name,
    "labels": _labels,
    "group": _group,
    "deadline": _deadline,
    "max_idle": lambda value, _owner: {"max_idle": check_limit(value)},
    "max_materialize": lambda value, _owner: {"max_materialize": check_limit(value)},
    "eager": _eager,
}
