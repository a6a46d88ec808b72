"""Serializers of bulk operations: start, preview, progress, and the outcome of each object."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.lists.shapes import ParametersField
from portal.api.shapes import StrictSerializer
from portal.lists.selection import MAX_NAMED
from wms.actions.registry import KINDS
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.services import MAX_REASON
from wms.bulk.states import Outcome


class StartBulkSerializer(StrictSerializer):
    """The first step names objects and an action, the second one has the `operation_token`."""

    dry_run = serializers.BooleanField(
        default=False, help_text="Must be true in the first step, which changes nothing."
    )
    list = serializers.ChoiceField(choices=list(KINDS), required=False)
    filter = ParametersField(required=False, help_text="All objects that it means now.")
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        required=False,
        max_length=MAX_NAMED,
        help_text="Instead of a filter: these objects.",
    )
    action = serializers.CharField(required=False, max_length=32)
    arguments = serializers.DictField(required=False)
    reason = serializers.CharField(required=False, allow_blank=True, max_length=MAX_REASON)
    operation_token = serializers.CharField(
        required=False, help_text="That of the preview: the second step, which begins."
    )
    expected_count = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="How many the preview told. Needed for more than 1,000 objects and for what "
        "cannot be taken back of others'; if it is another number now, nothing is done (409).",
    )
    accept_changes = serializers.BooleanField(
        default=False, help_text="Go on although some have dropped out since."
    )


class BulkOperationSerializer(serializers.ModelSerializer[BulkOperation]):
    """A bulk operation."""

    list = serializers.CharField(source="list_name", read_only=True)
    owner = serializers.CharField(source="owner.username", read_only=True)
    filter = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    retry_of = serializers.IntegerField(source="retry_of_id", read_only=True, allow_null=True)

    class Meta:
        model = BulkOperation
        fields = [
            "id", "list", "action", "arguments", "reason", "owner", "filter", "snapshot_at",
            "state", "state_since", "frozen_count", "counts", "retry_of", "created_at",
            "confirmed_at", "ended_at",
        ]  # fmt: skip

    @extend_schema_field(ParametersField(allow_null=True))
    def get_filter(self, operation: BulkOperation) -> Any:
        """Filter of the selection; null when the objects were named."""
        return operation.filters

    @extend_schema_field(
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in Outcome.values},
            "required": Outcome.values,
        }
    )
    def get_counts(self, operation: BulkOperation) -> dict[str, int]:
        """Number of objects by outcome."""
        return {
            Outcome.PENDING.value: operation.pending_count,
            Outcome.DONE.value: operation.done_count,
            Outcome.SKIPPED.value: operation.skipped_count,
            Outcome.FAILED.value: operation.failed_count,
        }


class BulkCountSerializer(serializers.Serializer[Any]):
    """Number of objects with the same value."""

    name = serializers.CharField()
    count = serializers.IntegerField()


class BulkSampleSerializer(serializers.Serializer[Any]):
    """One of the objects."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(source="label")
    state = serializers.CharField()
    group = serializers.CharField(help_text="Its owner or site.")
    obstacle = serializers.CharField(help_text="Why it would be skipped; empty if it would not.")


class BulkPreviewSerializer(serializers.Serializer[Any]):
    """Preview of an operation; nothing has been changed yet."""

    operation = BulkOperationSerializer()
    operation_token = serializers.CharField(help_text="Confirms it within a day.")
    total = serializers.IntegerField()
    fitting = serializers.IntegerField(help_text="So many can be changed as they are now.")
    foreign = serializers.IntegerField(help_text="So many belong to others.")
    needs_expected_count = serializers.BooleanField()
    states = BulkCountSerializer(many=True)
    groups = BulkCountSerializer(many=True, help_text="By owner or site, the largest first.")
    skipped = BulkCountSerializer(many=True, help_text="Why the others would be skipped.")
    effects = serializers.ListField(child=serializers.CharField())
    samples = BulkSampleSerializer(many=True)


class BulkItemSerializer(serializers.ModelSerializer[BulkItem]):
    """Outcome of one object."""

    class Meta:
        model = BulkItem
        fields = ["id", "object_id", "outcome", "reason"]
