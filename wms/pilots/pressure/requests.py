"""Rows of the director's requests for pilots: stored by entry with a lease, and as history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from matching.pressure.formulas import LEASE_S
from matching.pressure.plan_values import Request
from wms.pilots.pressure_models import PressureRecord, PressureRequest
from wms.sites.frontends.entries import EntryKey

#: A record of each queue at most so often, and for so long.
_RECORD_EVERY = timedelta(minutes=1)
_RECORDS_KEPT = timedelta(days=1)
_WRITTEN = (
    "wanted", "granted", "ceiling", "waiting_jobs", "reasons", "owners", "demand_gone_at",
    "idle_since", "updated_at", "lease_until", "expired_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planned:
    """Decision of the planner for one entry: a queue, as one frontend sees it.

    `is_closed` when it gets nothing whatever waits, so that its demand is not known; `is_idle` when
    none of its running pilots has a job. `owners` are the needs of owners of private pilots.
    """

    key: EntryKey
    request: Request
    waiting_jobs: int
    is_closed: bool
    is_idle: bool
    owners: list[dict[str, Any]] = field(default_factory=list)


def stored_requests() -> dict[EntryKey, PressureRequest]:
    """Latest request of each entry."""
    return {(row.queue_id, row.frontend_id): row for row in PressureRequest.objects.all()}


@transaction.atomic
def store_requests(
    planned: Sequence[Planned], old: Mapping[EntryKey, PressureRequest], now: datetime
) -> list[PressureRequest]:
    """Renew every request, zeros included: what is not asked for any more ends at once.

    Requests of entries that are not planned for any more are removed.
    """
    rows = [_row(each, old.get(each.key), now) for each in planned]
    gone = set(old) - {each.key for each in planned}
    if gone:
        PressureRequest.objects.filter(pk__in=[old[key].pk for key in gone]).delete()
    PressureRequest.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["queue", "frontend"],
        update_fields=_WRITTEN,
        batch_size=1000,
    )
    _record(rows, old, now)
    return rows


def _row(planned: Planned, old: PressureRequest | None, now: datetime) -> PressureRequest:
    request = planned.request
    gone_since = (old and old.demand_gone_at) or now
    idle_since = (old and old.idle_since) or now
    queue_id, frontend_id = planned.key
    return PressureRequest(
        queue_id=queue_id,
        frontend_id=frontend_id,
        wanted=request.wanted,
        granted=request.level,
        ceiling=request.ceiling,
        waiting_jobs=planned.waiting_jobs,
        reasons=list(request.reasons),
        owners=planned.owners,
        demand_gone_at=None if planned.waiting_jobs or planned.is_closed else gone_since,
        idle_since=idle_since if planned.is_idle else None,
        updated_at=now,
        lease_until=now + timedelta(seconds=LEASE_S),
    )


def _record(
    rows: Iterable[PressureRequest], old: Mapping[EntryKey, PressureRequest], now: datetime
) -> None:
    """Keep the request and its results as history; of an idle queue, nothing."""
    due = [row for row in rows if _is_due(row, old.get((row.queue_id, row.frontend_id)), now)]
    if not due:
        return
    records = [_recorded(row, old.get((row.queue_id, row.frontend_id)), now) for row in due]
    PressureRecord.objects.bulk_create(records, ignore_conflicts=True, batch_size=1000)
    PressureRequest.objects.filter(pk__in=[row.pk for row in due]).update(recorded_at=now)
    for row, record in zip(due, records, strict=True):
        if record.submitted or record.removed:
            # Turns may have added to them since they were read.
            PressureRequest.objects.filter(pk=row.pk).update(
                submitted_since=F("submitted_since") - record.submitted,
                removed_since=F("removed_since") - record.removed,
            )
    PressureRecord.objects.filter(at__lt=now - _RECORDS_KEPT).delete()


def _is_due(row: PressureRequest, old: PressureRequest | None, now: datetime) -> bool:
    if old is None:
        return bool(row.wanted)
    if old.recorded_at is not None and now - old.recorded_at < _RECORD_EVERY:
        return False
    # The zero after the end of all demand is kept too.
    return bool(row.wanted or old.wanted or old.submitted_since or old.removed_since)


def _recorded(row: PressureRequest, old: PressureRequest | None, now: datetime) -> PressureRecord:
    return PressureRecord(
        queue_id=row.queue_id,
        frontend_id=row.frontend_id,
        at=now,
        wanted=row.wanted,
        granted=row.granted,
        ceiling=row.ceiling,
        waiting_jobs=row.waiting_jobs,
        submitted=old.submitted_since if old else 0,
        removed=old.removed_since if old else 0,
        reasons=row.reasons,
    )
