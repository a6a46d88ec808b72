"""Models of bulk operations, their frozen objects, and their events."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from wms.bulk.states import ACTIVE, TERMINAL, BulkState, Outcome
from wms.core.models import EventRecord


class BulkOperation(models.Model):
    """Action on a frozen set of objects of a list.

    A preview does nothing until it is confirmed. The counts of outcomes are written with the
    outcomes; the rest of `frozen_count` is pending.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="bulk_operations"
    )
    list_name = models.CharField(max_length=32)
    action = models.CharField(max_length=32)
    arguments = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    filters = models.JSONField(
        null=True, help_text="The filter that chose the objects; null: they were named one by one."
    )
    snapshot_at = models.DateTimeField(help_text="What was made after this is not in it.")
    shown_count = models.BigIntegerField(
        null=True, help_text="How many objects the list showed; null: it did not tell."
    )
    is_shown_estimate = models.BooleanField(default=False)
    frozen_count = models.PositiveIntegerField(default=0)
    done_count = models.PositiveIntegerField(default=0, db_default=0)
    skipped_count = models.PositiveIntegerField(default=0, db_default=0)
    failed_count = models.PositiveIntegerField(default=0, db_default=0)
    batch_limit = models.PositiveIntegerField(
        null=True, help_text="So many objects at once, since more took too long."
    )
    retry_of = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="retries"
    )
    state = models.CharField(max_length=16, choices=BulkState, default=BulkState.PREVIEW)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(db_default=Now())
    confirmed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=BulkState.values), name="bulkoperation_state_known"
            ),
            models.CheckConstraint(
                condition=Q(
                    frozen_count__gte=F("done_count") + F("skipped_count") + F("failed_count")
                ),
                name="bulkoperation_counts_fit",
            ),
            models.CheckConstraint(
                condition=Q(state=BulkState.PREVIEW) | Q(confirmed_at__isnull=False),
                name="bulkoperation_was_confirmed",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=TERMINAL) | Q(ended_at__isnull=False),
                name="bulkoperation_end_has_time",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "id"], name="bulkoperation_by_owner"),
            models.Index(fields=["id"], condition=Q(state__in=ACTIVE), name="bulkoperation_to_do"),
            models.Index(fields=["state", "state_since"], name="bulkoperation_by_state"),
        ]

    def __str__(self) -> str:
        return f"bulk operation {self.pk}"

    @property
    def pending_count(self) -> int:
        """Number of objects without an outcome."""
        return self.frozen_count - self.done_count - self.skipped_count - self.failed_count


class BulkOperationEvent(EventRecord):
    """Event of an operation: confirmed, begun, stopped, ended."""

    operation = models.ForeignKey(BulkOperation, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["operation", "id"], name="bulkevent_by_operation")]

    def __str__(self) -> str:
        return f"bulk operation {self.operation_id}: {self.event}"


class BulkItem(models.Model):
    """Object of an operation with its outcome, written together with the object's change."""

    operation = models.ForeignKey(
        BulkOperation, on_delete=models.CASCADE, related_name="items", db_index=False
    )
    object_id = models.BigIntegerField()
    outcome = models.CharField(
        max_length=8, choices=Outcome, default=Outcome.PENDING, db_default=Outcome.PENDING
    )
    reason = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["operation", "object_id"], name="bulkitem_once"),
            models.CheckConstraint(
                condition=Q(outcome__in=Outcome.values), name="bulkitem_outcome_known"
            ),
            models.CheckConstraint(
                condition=~Q(outcome__in=[Outcome.SKIPPED, Outcome.FAILED]) | ~Q(reason=""),
                name="bulkitem_refusal_has_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["operation", "outcome", "id"], name="bulkitem_by_outcome"),
            models.Index(fields=["operation", "id"], name="bulkitem_by_operation"),
        ]

    def __str__(self) -> str:
        return f"{self.operation_id}: object {self.object_id} is {self.outcome}"
