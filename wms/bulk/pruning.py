"""What is forgotten: previews that nobody confirmed, after a day; operations, 90 days after their
end. What was done stays told in the events of the objects and in the audit trail.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.states import ACTIVE, TERMINAL, BulkState

#: A preview that is older says nothing of how things are now.
PREVIEW_LIFE = timedelta(hours=24)
KEPT_FOR = timedelta(days=90)
#: So many operations are forgotten in a cycle; each has 100,000 rows at the most.
_AT_ONCE = 5


def prune(now: datetime) -> int:
    """Forget what is old; how many operations."""
    old = [
        *_ids(BulkState.PREVIEW, before=now - PREVIEW_LIFE),
        *_ids(*TERMINAL, before=now - KEPT_FOR),
    ]
    return sum(forget([pk]) for pk in old[:_AT_ONCE])


@transaction.atomic
def forget(operation_ids: Collection[int]) -> int:
    """Delete operations that do not go on; how many. One that is being confirmed now is left."""
    idle = BulkOperation.objects.filter(pk__in=operation_ids).exclude(state__in=ACTIVE)
    ids = [operation.pk for operation in idle.select_for_update(skip_locked=True)]
    BulkItem.objects.filter(operation_id__in=ids).delete()
    BulkOperation.objects.filter(pk__in=ids).delete()
    return len(ids)


def _ids(*states: str, before: datetime) -> list[int]:
    old = BulkOperation.objects.filter(state__in=states, state_since__lt=before)
    return list(old.order_by("state_since").values_list("pk", flat=True)[:_AT_ONCE])
