"""Selectors of bulk operations, visible or active, their objects by outcome, and their events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from wms.actions.registry import find_kind
from wms.bulk.models import BulkItem, BulkOperation, BulkOperationEvent
from wms.bulk.policy import may_see_all
from wms.bulk.states import ACTIVE, Outcome
from wms.core.errors import NotFound
from wms.core.models import User


@dataclass(frozen=True, slots=True)
class ItemLine:
    """Object of an operation: outcome, and its present name and state."""

    item: BulkItem
    label: str
    state: str


def visible_operations(user: User) -> QuerySet[BulkOperation]:
    """Operations that the user may see, latest first: the own ones, or everybody's."""
    if not user.is_active:
        return BulkOperation.objects.none()
    operations = BulkOperation.objects.select_related("owner", "retry_of").order_by("-pk")
    return operations if may_see_all(user) else operations.filter(owner=user)


def find_operation(user: User, operation_id: int) -> BulkOperation:
    """Visible operation by id. Raises NotFound."""
    operation = visible_operations(user).filter(pk=operation_id).first()
    if operation is None:
        raise NotFound(f"There is no bulk operation {operation_id}, or you may not see it.")
    return operation


def active_operations() -> list[int]:
    """Ids of active operations, those that wait longest first."""
    active = BulkOperation.objects.filter(state__in=ACTIVE).order_by("confirmed_at", "pk")
    return list(active.values_list("pk", flat=True))


def items_of(operation: BulkOperation, outcomes: Collection[str] = ()) -> QuerySet[BulkItem]:
    """Objects of an operation, all or those with one of these outcomes."""
    items = BulkItem.objects.filter(operation=operation).order_by("pk")
    return items.filter(outcome__in=outcomes) if outcomes else items


def item_lines(user: User, operation: BulkOperation, items: Sequence[BulkItem]) -> list[ItemLine]:
    """Items with the present names and states of their objects, where visible. One query."""
    kind = find_kind(operation.list_name)
    columns = ("pk", kind.label, "state") if kind.label != "pk" else ("pk", "pk", "state")
    objects = kind.visible(user).filter(pk__in=[item.object_id for item in items])
    rows = list(objects.order_by().values_list(*columns))
    labels = {pk: str(label) for pk, label, _ in rows}
    states = {pk: state for pk, _, state in rows}
    return [
        ItemLine(item, labels.get(item.object_id, ""), states.get(item.object_id, ""))
        for item in items
    ]


def events_of(operation: BulkOperation) -> QuerySet[BulkOperationEvent]:
    """Events of an operation, latest first."""
    return operation.events.order_by("-pk")


def counts_of(operation: BulkOperation) -> dict[str, int]:
    """Number of objects by outcome."""
    return {
        Outcome.PENDING.value: operation.pending_count,
        Outcome.DONE.value: operation.done_count,
        Outcome.SKIPPED.value: operation.skipped_count,
        Outcome.FAILED.value: operation.failed_count,
    }
