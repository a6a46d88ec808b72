"""Carrying confirmed operations out, batch by batch.

The change of an object, its events, its outcome and the operation's counts are one transaction: a
worker that is killed anywhere has done a batch or has not begun it. Objects that another worker has
at this moment are passed over.
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
#: A cycle begins no batch after so long.
_CYCLE_S = 10.0
_OURS = "The system failed with it; the administrators find more in the log"


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one object, and why."""

    outcome: Outcome
    reason: str = ""


def run_cycle(now: datetime) -> CycleReport:
    """Deal with all operations in turn, a batch of each; forget what is old."""
    began_s = time.monotonic()
    turn = deque(active_operations())
    counts: Counter[str] = Counter(operations=len(turn))
    while turn and time.monotonic() - began_s < _CYCLE_S:
        operation_id = turn.popleft()
        dealt_with = _run_safely(operation_id)
        counts["objects"] += dealt_with
        if dealt_with:
            turn.append(operation_id)
    return {**counts, "forgotten": prune(now)}


def _run_safely(operation_id: int) -> int:
    """One batch. What goes wrong with one operation stops no other one."""
    try:
        return run_batch(operation_id)
    except SoftTimeLimitExceeded:
        log.warning("bulk_batch_too_long", operation=operation_id)
        _shorten(operation_id)
        raise
    except (OperationalError, InterfaceError) as error:
        # The database is away, or this was a deadlock: nothing of the batch was done.
        log.warning("bulk_batch_postponed", operation=operation_id, error=str(error))
        if isinstance(error.__cause__, QueryCanceled):  # a limit of the database's own
            _shorten(operation_id)
    except Exception:
        log.exception("bulk_batch_failed", operation=operation_id)
        with suppress(NotFound):  # an action that there is not any more: it waits to be stopped
            _shorten(operation_id, _OURS)
    return 0


@transaction.atomic
def run_batch(operation_id: int) -> int:
    """Act on the next objects of an operation; how many. With the last of them it is done."""
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
        _settle(operation, _outcomes(kind, action, ids, order))
    elif not pending.exists():
        OPERATIONS.apply(
            "end", [operation.pk], actor=_RUNNER, reason=operation.reason, ended_at=DatabaseTime()
        )
    return len(ids)


def _outcomes(kind: Kind, action: Action, ids: Sequence[int], order: Order) -> dict[int, Told]:
    """Permission is asked now, for the person as they are now."""
    assert order.actor.user is not None
    objects = kind.model._default_manager.filter(pk__in=ids).order_by("pk")
    keys = dict(objects.values_list("pk", kind.key))
    permitted = set(kind.permitted(order.actor.user, set(keys.values())))
    refused = f"{order.actor.name} may not do this: {kind.refusal}"
    told = {pk: Told(Outcome.SKIPPED, f"there is no such {kind.noun} any more") for pk in ids}
    told |= {pk: Told(Outcome.SKIPPED, refused) for pk, key in keys.items() if key not in permitted}
    fitting = objects.filter(pk__in=[pk for pk, key in keys.items() if key in permitted])
    obstacles = dict(fitting.annotate(obstacle=action.obstacle()).values_list("pk", "obstacle"))
    told |= {pk: Told(Outcome.SKIPPED, words) for pk, words in obstacles.items() if words}
    told |= _carried_out(kind, action, [pk for pk, words in obstacles.items() if not words], order)
    return told


def _carried_out(kind: Kind, action: Action, ids: Sequence[int], order: Order) -> dict[int, Told]:
    """All at once; where one of them is refused, each alone, so that its trouble stays its own."""
    if not ids:
        return {}
    tried = _tried(action, ids, order)
    if not isinstance(tried, Told):
        # A service may tell of more than it was asked for: of what goes along with an object.
        changed = {pk: Told(Outcome.DONE, tried[pk]) for pk in ids if pk in tried}
        return {**_left(kind, action, [pk for pk in ids if pk not in changed]), **changed}
    if len(ids) == 1:
        return {ids[0]: tried}
    told: dict[int, Told] = {}
    for pk in ids:
        told |= _carried_out(kind, action, [pk], order)
    return told


def _tried(action: Action, ids: Sequence[int], order: Order) -> Mapping[int, str] | Told:
    """What the service says of the objects that it changed; or how it refused, changing nothing."""
    try:
        with transaction.atomic():
            return action.act_on_many(ids, order)
    except (SoftTimeLimitExceeded, OperationalError, InterfaceError):
        raise
    except (Conflict, NotPermitted, NotFound) as error:
        return Told(Outcome.SKIPPED, str(error)[:2000])
    except PilotageError as error:
        return Told(Outcome.FAILED, str(error)[:2000])
    except Exception as error:
        log.exception("bulk_objects_failed", operation=order.actor.operation, objects=ids[:10])
        return Told(Outcome.FAILED, f"{_OURS}: {type(error).__name__}")


def _left(kind: Kind, action: Action, ids: Sequence[int]) -> dict[int, Told]:
    """What changed between the look at the objects and their locks, told as it is now."""
    if not ids:
        return {}
    objects = kind.model._default_manager.filter(pk__in=ids).order_by()
    words = dict(objects.annotate(obstacle=action.obstacle()).values_list("pk", "obstacle"))
    return {pk: Told(Outcome.SKIPPED, words.get(pk) or "it did not fit any more") for pk in ids}


def _settle(operation: BulkOperation, told: Mapping[int, Told]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SETTLE_ITEMS, [
            list(told),
            [each.outcome.value for each in told.values()],
            [each.reason.replace("\0", "") for each in told.values()],
            operation.pk,
        ])  # fmt: skip
    counts = Counter(each.outcome.value for each in told.values())
    columns: dict[str, Any] = {
        f"{outcome}_count": F(f"{outcome}_count") + number for outcome, number in counts.items()
    }
    BulkOperation.objects.filter(pk=operation.pk).update(**columns)


def _shorten(operation_id: int, trouble: str = "it takes too long") -> None:
    """Take fewer objects at once from now on; one that makes the trouble alone has failed."""
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
            _settle(operation, {item.object_id: Told(Outcome.FAILED, trouble)})
