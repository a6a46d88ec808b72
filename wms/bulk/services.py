"""Services on bulk operations: freeze a selection as preview, confirm, stop, retry what failed.

They check permissions and the limits of a user, and write the audit; the control loop in
`wms.bulk.execution` acts on the objects. A new preview deletes the user's superfluous old ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from wms.actions.actions import Action
from wms.actions.kinds import Kind
from wms.actions.registry import find_kind
from wms.bulk.lifecycle import OPERATIONS, RUN_TASK
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.policy import require_acting, require_stopping
from wms.bulk.preview import foreign_objects, must_type
from wms.bulk.pruning import PREVIEW_LIFE, forget
from wms.bulk.selectors import find_operation
from wms.bulk.sql import FREEZE_SELECTION
from wms.bulk.states import ACTIVE, BulkState, Outcome
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    NotPermitted,
    ReasonRequired,
    TooMany,
)
from wms.core.loops import wake_loop
from wms.core.models import User
from wms.core.statemachine import DatabaseTime

#: Limit of objects in an operation.
MAX_OBJECTS = 100_000
#: Limits of active operations and of kept previews of a user.
MAX_ACTIVE = 3
MAX_PREVIEWS = 5
MAX_REASON = 2000
NO_MATCH = "it did not fit the filter any more when the operation was confirmed"


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects selected by a user: visible rows of a list.

    `filters` is the filter of the list; None means that the objects were named one by one. `shown`
    is the number that the list showed, `is_estimate` whether that was an estimate.
    """

    list_name: str
    rows: QuerySet[Any]
    filters: Mapping[str, Any] | None = None
    snapshot_at: datetime | None = None
    shown: int | None = None
    is_estimate: bool = False


class SelectionChanged(Conflict):
    """Some objects no longer match the filter since the preview was shown."""

    def __init__(self, *, seen: int, now: int) -> None:
        super().__init__(
            f"You were shown {seen:,}; {now:,} are left, since the others do not fit the filter "
            "any more. Nothing was done: look at it again."
        )
        self.seen = seen
        self.now = now


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Input of a user who confirms a preview.

    `seen` is the number of objects in the preview, `typed` the number that the user typed. With
    `accepts` the user is not asked again when some objects have dropped out.
    """

    seen: int | None = None
    typed: int | None = None
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    accepts: bool = False


@transaction.atomic
def freeze(
    selection: Selection,
    *,
    action: str,
    actor: Actor,
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
    retry_of: BulkOperation | None = None,
) -> BulkOperation:
    """Store a selection as the preview of a bulk operation, which may be confirmed later.

    Raises NotPermitted, NotFound, InvalidInput, Conflict for nothing and TooMany for too much.
    """
    owner = require_acting(actor)
    kind = find_kind(selection.list_name)
    found_action = kind.find_action(action)
    checked = found_action.check(arguments or {})
    instant = selection.snapshot_at or timezone.now()
    operation = BulkOperation.objects.create(
        owner=owner,
        list_name=kind.name,
        action=found_action.name,
        arguments=checked,
        reason=_checked_reason(reason),
        filters=None if selection.filters is None else dict(selection.filters),
        snapshot_at=instant,
        shown_count=selection.shown,
        is_shown_estimate=selection.is_estimate,
        retry_of=retry_of,
    )
    operation.frozen_count = _insert_items(operation, selection.rows.filter(
        kind.made_before(instant)))  # fmt: skip
    if operation.frozen_count > MAX_OBJECTS:
        raise TooMany(
            f"The selection has more than {MAX_OBJECTS:,} {kind.nouns}, which is the most for one "
            "operation: narrow the filter, for example by time or owner."
        )
    if not operation.frozen_count:
        raise Conflict(f"No {kind.noun} fits the selection now, so there is nothing to do.")
    operation.save(update_fields=["frozen_count"])
    _delete_old_previews(owner)
    return operation


def _insert_items(operation: BulkOperation, rows: QuerySet[Any]) -> int:
    try:
        text, parameters = rows.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            FREEZE_SELECTION.format(rows=text), [operation.pk, *parameters, MAX_OBJECTS + 1]
        )
        return int(cursor.rowcount)


def _delete_old_previews(owner: User) -> None:
    """Delete all but the latest previews of a user; each has up to 100,000 rows."""
    previews = BulkOperation.objects.filter(owner=owner, state=BulkState.PREVIEW).order_by("-pk")
    forget(previews.values_list("pk", flat=True)[MAX_PREVIEWS:])


def confirm(
    operation_id: int,
    confirmation: Confirmation,
    *,
    actor: Actor,
    matching: QuerySet[Any] | None = None,
) -> BulkOperation:
    """Confirm a preview, so that the operation starts. Confirming again changes nothing.

    `matching` are the rows that match its filter now: other objects are skipped, and raise
    SelectionChanged unless the user has seen or accepted it. Raises NotFound, NotPermitted,
    ReasonRequired, InvalidInput, Conflict, TooMany.
    """
    owner = require_acting(actor)
    operation = find_operation(owner, operation_id)
    if operation.owner_id != owner.pk:
        raise NotPermitted(
            f"Only {operation.owner.get_username()} confirms bulk operation {operation_id}."
        )
    if operation.state != BulkState.PREVIEW:
        return operation
    if timezone.now() - operation.created_at > PREVIEW_LIFE:
        raise Conflict("This preview is more than a day old: make the selection again.")
    _skip_unmatched(operation, matching)
    with transaction.atomic():
        # By their row, so that two confirmations of one person count each other.
        User.objects.select_for_update().get(pk=owner.pk)
        locked = _locked(operation_id)
        if locked.state == BulkState.PREVIEW:
            _begin(locked, confirmation, actor, owner)
    return find_operation(owner, operation_id)


def _locked(operation_id: int) -> BulkOperation:
    """Locked operation. Raises NotFound for a preview that was deleted meanwhile."""
    rows = BulkOperation.objects.select_for_update(of=("self",))
    operation = rows.filter(pk=operation_id).first()
    if operation is None:
        raise NotFound(
            f"The preview {operation_id} is kept no longer: only your latest {MAX_PREVIEWS} are. "
            "Make the selection again."
        )
    return operation


def _begin(operation: BulkOperation, confirmation: Confirmation, actor: Actor, owner: User) -> None:
    kind = find_kind(operation.list_name)
    action = kind.find_action(operation.action)
    reason = _checked_reason(confirmation.reason) or operation.reason
    if action.needs_reason and not reason:
        raise ReasonRequired(action.name)
    given = confirmation.arguments
    arguments = operation.arguments if given is None else action.check(given)
    _check_count(operation, confirmation, action, kind, owner)
    if BulkOperation.objects.filter(owner=owner, state__in=ACTIVE).count() >= MAX_ACTIVE:
        raise TooMany(
            f"{MAX_ACTIVE} of your bulk operations go on already: wait until one has ended, or "
            "stop one."
        )
    OPERATIONS.apply(
        "confirm",
        [operation.pk],
        actor=actor,
        reason=reason,
        arguments=arguments,
        confirmed_at=DatabaseTime(),
    )
    BulkOperation.objects.filter(pk=operation.pk).update(reason=reason)
    record_action(
        f"bulk {action.name} {kind.name}",
        target=f"bulk operation {operation.pk}",
        actor=actor,
        reason=reason,
        facts={
            "objects": operation.pending_count,
            "filters": operation.filters,
            "arguments": arguments,
        },
    )
    transaction.on_commit(partial(wake_loop, RUN_TASK))


def _check_count(
    operation: BulkOperation,
    confirmation: Confirmation,
    action: Action,
    kind: Kind,
    owner: User,
) -> None:
    total, seen = operation.pending_count, confirmation.seen
    if not total:
        raise Conflict(f"No {kind.noun} is left that fits the filter: there is nothing to do.")
    if seen is not None and seen != total and not confirmation.accepts:
        raise SelectionChanged(seen=seen, now=total)
    # Who accepts that some drop out meanwhile has typed the number that was shown.
    counts = {total, seen if confirmation.accepts else total}
    if confirmation.typed is not None and confirmation.typed in counts:
        return
    if must_type(action, total=total, foreign=foreign_objects(operation, owner)):
        message = f"type {total}, the number of {kind.nouns}, to confirm this"
        raise InvalidInput.of(message, field="typed_count")


def _skip_unmatched(operation: BulkOperation, matching: QuerySet[Any] | None) -> None:
    """Skip objects that no longer match the filter, in a transaction of its own."""
    if matching is None:
        return
    with transaction.atomic():
        locked = _locked(operation.pk)
        if locked.state != BulkState.PREVIEW:
            return
        fits = Exists(matching.order_by().filter(pk=OuterRef("object_id")))
        pending = BulkItem.objects.filter(operation=locked, outcome=Outcome.PENDING)
        unmatched = pending.filter(~fits)
        count = unmatched.update(outcome=Outcome.SKIPPED, reason=NO_MATCH)
        BulkOperation.objects.filter(pk=locked.pk).update(skipped_count=F("skipped_count") + count)


@transaction.atomic
def stop(operation_id: int, *, actor: Actor, reason: str = "") -> BulkOperation:
    """Stop an operation; changed objects stay changed. Stopping again changes nothing.

    A running batch is finished. Raises NotFound, NotPermitted, Conflict.
    """
    user = require_acting(actor)
    operation = find_operation(user, operation_id)
    require_stopping(actor, operation)
    applied, _ = OPERATIONS.apply(
        "stop", [operation.pk], actor=actor, reason=_checked_reason(reason), ended_at=DatabaseTime()
    )
    operation = find_operation(user, operation_id)
    if applied.changed:
        target = f"bulk operation {operation.pk}"
        record_action("stop bulk operation", target=target, actor=actor, reason=reason.strip())
    elif operation.state != BulkState.STOPPED:
        raise Conflict(f"Bulk operation {operation.pk} is {operation.state}: it does not go on.")
    return operation


@transaction.atomic
def retry(operation_id: int, *, actor: Actor) -> BulkOperation:
    """New preview of an operation with the objects that failed or are pending after a stop.

    Raises NotFound, NotPermitted, and Conflict while the operation or its last batch runs, or when
    no object is left.
    """
    operation = find_operation(require_acting(actor), operation_id)
    if operation.state in ACTIVE or operation.state == BulkState.PREVIEW:
        raise Conflict(f"Bulk operation {operation.pk} has not ended: it is {operation.state}.")
    left = BulkItem.objects.filter(
        operation=operation, outcome__in=[Outcome.FAILED, Outcome.PENDING]
    )
    kind = find_kind(operation.list_name)
    # Objects of a running batch are locked and have no outcome yet.
    free = left.select_for_update(of=("self",), skip_locked=True)
    if len(free.values_list("pk", flat=True)) < left.count():
        raise Conflict(
            f"The last batch of bulk operation {operation.pk} is under way: try again in a moment."
        )
    rows = kind.model._default_manager.filter(pk__in=left.values("object_id"))
    return freeze(
        Selection(kind.name, rows),
        action=operation.action,
        actor=actor,
        reason=operation.reason,
        arguments=operation.arguments,
        retry_of=operation,
    )


def _checked_reason(reason: str) -> str:
    text = reason.strip()
    if len(text) > MAX_REASON or "\0" in text:
        raise InvalidInput.of(f"at most {MAX_REASON} characters of text", field="reason")
    return text
