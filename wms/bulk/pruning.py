"""Pruning of bulk operations: previews after a day, operations 90 days after their end.

The events of the objects and the audit trail stay. Also the deletion of given operations, such as
superfluous previews.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.states import ACTIVE, TERMINAL, BulkState

#: Time after which a preview can no longer be confirmed.
PREVIEW_LIFE = timedelta(hours=24)
KEPT_FOR = timedelta(days=90)
#: Limit of operations deleted in a cycle; each has up to 100,000 rows.
_AT_ONCE = 5


def prune(now: datetime) -> int:
    """Delete old operations. Returns their number."""
    old = [
        *_ids(BulkState.PREVIEW, before=now - PREVIEW_LIFE),
        *_ids(*TERMINAL, before=now - KEPT_FOR),
    ]
    return sum(forget([pk]) for pk in old[:_AT_ONCE])


@transaction.atomic
def forget(operation_ids: Collection[int]) -> int:
    """Delete inactive operations, except locked ones. Returns their number."""
    idle = BulkOperation.objects.filter(pk__in=operation_ids).exclude(state__in=ACTIVE)
    ids = [operation.pk for operation in idle.select_for_update(skip_locked=True)]
    BulkItem.objects.filter(operation_id__in=ids).delete()
    BulkOperation.objects.filter(pk__in=ids).delete()
    return len(ids)


def _ids(*states: str, before: datetime) -> list[int]:
    old = BulkOperation.objects.filter(state__in=states, state_since__lt=before)
    return list(old.order_by("state_since").values_list("pk", flat=True)[:_AT_ONCE])
