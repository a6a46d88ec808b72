"""Execution of confirmed bulk operations, batch by batch, by a control loop.

Changes of objects, their events and outcomes, and the operation's counts are one transaction for
each batch: a killed worker has done a batch or nothing of it. Objects that another worker has
locked are left to it. After a batch that takes too long the next is smaller. The cycle also prunes
old operations.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F
from psycopg.errors import QueryCanceled

from wms.actions.actions import Action
from wms.actions.arguments import Order
from wms.actions.kinds import Kind
from wms.actions.registry import find_kind
from wms.bulk.lifecycle import OPERATIONS
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.pruning import prune
from wms.bulk.selectors import active_operations
from wms.bulk.sql import SETTLE_ITEMS
from wms.bulk.states import ACTIVE, Outcome
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted, PilotageError
from wms.core.loops import CycleReport
from wms.core.statemachine import DatabaseTime

log = structlog.get_logger(__name__)
_RUNNER = Actor.system("bulk-operations")
#: Time in a cycle after which no batch starts.
_CYCLE_S = 10.0
_INTERNAL_ERROR = "The system failed with it; the administrators find more in the log"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """Outcome of an object in an operation, and the reason."""

    outcome: Outcome
    reason: str = ""


def run_cycle(now: datetime) -> CycleReport:
    """Run batches of all active operations, round robin, and prune old ones."""
    began_s = time.monotonic()
    round_robin = deque(active_operations())
    counts: Counter[str] = Counter(operations=len(round_robin))
    while round_robin and time.monotonic() - began_s < _CYCLE_S:
        operation_id = round_robin.popleft()
        batch_size = _run_safely(operation_id)
        counts["objects"] += batch_size
        if batch_size:
            round_robin.append(operation_id)
    return {**counts, "forgotten": prune(now)}


def _run_safely(operation_id: int) -> int:
    """Run one batch; an exception makes the next batch smaller and does not stop the cycle."""
    try:
        return run_batch(operation_id)
    except SoftTimeLimitExceeded:
        log.warning("bulk_batch_too_long", operation=operation_id)
        _reduce_batch(operation_id)
        raise
    except (OperationalError, InterfaceError) as error:
        # The database is away, or this was a deadlock: nothing of the batch was done.
        log.warning("bulk_batch_postponed", operation=operation_id, error=str(error))
        if isinstance(error.__cause__, QueryCanceled):  # a limit of the database's own
            _reduce_batch(operation_id)
    except Exception:
        log.exception("bulk_batch_failed", operation=operation_id)
        with suppress(NotFound):  # an action that there is not any more: it waits to be stopped
            _reduce_batch(operation_id, _INTERNAL_ERROR)
    return 0


@transaction.atomic
def run_batch(operation_id: int) -> int:
    """Run the next batch of an operation, and end it after the last. Returns the batch's size."""
    operation = (
        BulkOperation.objects.select_related("owner")
        .filter(pk=operation_id, state__in=ACTIVE)
        .first()
    )
    if operation is None:
        return 0
    kind = find_kind(operation.list_name)
    action = kind.find_action(operation.action)
    OPERATIONS.apply("begin", [operation.pk], actor=_RUNNER, reason=operation.reason)
    pending = BulkItem.objects.filter(operation=operation, outcome=Outcome.PENDING)
    size = min(action.batch, operation.batch_limit or action.batch)
    locked = pending.order_by("pk").select_for_update(skip_locked=True)
    ids = list(locked.values_list("object_id", flat=True)[:size])
    if ids and not BulkOperation.objects.filter(pk=operation_id, state__in=ACTIVE).exists():
        return 0  # stopped since: whoever tries it again may have taken these along
    if ids:
        owner = operation.owner
        actor = Actor(owner.get_username(), owner, operation.pk)
        order = Order(actor, operation.reason, action.for_service(operation.arguments))
        _store_outcomes(operation, _outcomes(kind, action, ids, order))
    elif not pending.exists():
        OPERATIONS.apply(
            "end", [operation.pk], actor=_RUNNER, reason=operation.reason, ended_at=DatabaseTime()
        )
    return len(ids)


def _outcomes(
    kind: Kind, action: Action, ids: Sequence[int], order: Order
) -> dict[int, ItemOutcome]:
    """Outcomes by object; permission is checked with the user's present roles."""
    assert order.actor.user is not None
    objects = kind.model._default_manager.filter(pk__in=ids).order_by("pk")
    keys = dict(objects.values_list("pk", kind.key))
    permitted = set(kind.permitted(order.actor.user, set(keys.values())))
    refused = f"{order.actor.name} may not do this: {kind.refusal}"
    outcomes = {
        pk: ItemOutcome(Outcome.SKIPPED, f"there is no such {kind.noun} any more") for pk in ids
    }
    outcomes |= {
        pk: ItemOutcome(Outcome.SKIPPED, refused)
        for pk, key in keys.items()
        if key not in permitted
    }
    fitting = objects.filter(pk__in=[pk for pk, key in keys.items() if key in permitted])
    obstacles = dict(fitting.annotate(obstacle=action.obstacle()).values_list("pk", "obstacle"))
    outcomes |= {
        pk: ItemOutcome(Outcome.SKIPPED, words) for pk, words in obstacles.items() if words
    }
    outcomes |= _act_on_batch(
        kind, action, [pk for pk, words in obstacles.items() if not words], order
    )
    return outcomes


def _act_on_batch(
    kind: Kind, action: Action, ids: Sequence[int], order: Order
) -> dict[int, ItemOutcome]:
    """Outcomes of an action on all objects at once or, if one is refused, on each separately."""
    if not ids:
        return {}
    result = _attempt(action, ids, order)
    if not isinstance(result, ItemOutcome):
        # A service may return more objects than these, such as inner DAGs.
        changed = {pk: ItemOutcome(Outcome.DONE, result[pk]) for pk in ids if pk in result}
        return {**_skipped_since(kind, action, [pk for pk in ids if pk not in changed]), **changed}
    if len(ids) == 1:
        return {ids[0]: result}
    outcomes: dict[int, ItemOutcome] = {}
    for pk in ids:
        outcomes |= _act_on_batch(kind, action, [pk], order)
    return outcomes


def _attempt(action: Action, ids: Sequence[int], order: Order) -> Mapping[int, str] | ItemOutcome:
    """Messages of the service by changed object, or the common outcome after an exception."""
    try:
        with transaction.atomic():
            return action.act_on_many(ids, order)
    except (SoftTimeLimitExceeded, OperationalError, InterfaceError):
        raise
    except (Conflict, NotPermitted, NotFound) as error:
        return ItemOutcome(Outcome.SKIPPED, str(error)[:2000])
    except PilotageError as error:
        return ItemOutcome(Outcome.FAILED, str(error)[:2000])
    except Exception as error:
        log.exception("bulk_objects_failed", operation=order.actor.operation, objects=ids[:10])
        return ItemOutcome(Outcome.FAILED, f"{_INTERNAL_ERROR}: {type(error).__name__}")


def _skipped_since(kind: Kind, action: Action, ids: Sequence[int]) -> dict[int, ItemOutcome]:
    """Skipped outcomes of objects that changed after the check, with their present obstacles."""
    if not ids:
        return {}
    objects = kind.model._default_manager.filter(pk__in=ids).order_by()
    words = dict(objects.annotate(obstacle=action.obstacle()).values_list("pk", "obstacle"))
    return {
        pk: ItemOutcome(Outcome.SKIPPED, words.get(pk) or "it did not fit any more") for pk in ids
    }


def _store_outcomes(operation: BulkOperation, outcomes: Mapping[int, ItemOutcome]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SETTLE_ITEMS, [
            list(outcomes),
            [each.outcome.value for each in outcomes.values()],
            [each.reason.replace("\0", "") for each in outcomes.values()],
            operation.pk,
        ])  # fmt: skip
    counts = Counter(each.outcome.value for each in outcomes.values())
    columns: dict[str, Any] = {
        f"{outcome}_count": F(f"{outcome}_count") + number for outcome, number in counts.items()
    }
    BulkOperation.objects.filter(pk=operation.pk).update(**columns)


def _reduce_batch(operation_id: int, reason: str = "it takes too long") -> None:
    """Reduce the batch limit of an operation; a batch of one object fails with the reason."""
    with transaction.atomic():
        operation = BulkOperation.objects.select_for_update().get(pk=operation_id)
        action = find_kind(operation.list_name).find_action(operation.action)
        size = min(action.batch, operation.batch_limit or action.batch)
        if size > 1:
            BulkOperation.objects.filter(pk=operation_id).update(batch_limit=max(1, size // 5))
            return
        first = BulkItem.objects.filter(operation=operation, outcome=Outcome.PENDING)
        item = first.order_by("pk").first()
        if item is not None and operation.state in ACTIVE:
            _store_outcomes(operation, {item.object_id: ItemOutcome(Outcome.FAILED, reason)})
