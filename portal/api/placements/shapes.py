"""Serializers of placement requests, their attempts and events."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.shapes import (
    EVENT_FIELDS,
    EventSerializer,
    TextsByNameField,
)
from wms.placement.models import PlacementAttempt, PlacementEvent, PlacementRequest


class PlacementRequestSerializer(serializers.ModelSerializer[PlacementRequest]):
    """A request to bring a file from one place to another."""

    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = PlacementRequest
        fields = [
            "id", "owner", "source_url", "destination_url", "state", "state_since",
            "state_reason", "attempt_number", "max_attempts", "due_at", "created_at", "ended_at",
        ]  # fmt: skip


class PlacementAttemptSerializer(serializers.ModelSerializer[PlacementAttempt]):
    """One try of a request."""

    class Meta:
        model = PlacementAttempt
        fields = [
            "number", "source_scheme", "destination_scheme", "started_at", "ended_at",
            "exit_code", "message", "size_bytes",
        ]  # fmt: skip


class PlacementEventSerializer(EventSerializer):
    """One change of a request."""

    class Meta:
        model = PlacementEvent
        fields = EVENT_FIELDS


class PlacementDetailSerializer(PlacementRequestSerializer):
    """A request with its ad, its attempts and its events."""

    attributes = TextsByNameField(read_only=True)
    attempts = PlacementAttemptSerializer(many=True, read_only=True)
    events = PlacementEventSerializer(many=True, read_only=True)
    dag = serializers.SerializerMethodField(help_text="The DAG that it is of.")
    node = serializers.SerializerMethodField(help_text="The node that it is of.")

    class Meta(PlacementRequestSerializer.Meta):
        fields = [
            *PlacementRequestSerializer.Meta.fields, "dag", "node", "directory", "arguments",
            "alternatives", "expected_sha256", "expected_bytes", "attributes", "attempts",
            "events",
        ]  # fmt: skip

    def get_dag(self, request: PlacementRequest) -> int | None:
        """Name the DAG; the view found it out."""
        node = self.context.get("node")
        return node.dag_id if node is not None else None

    def get_node(self, request: PlacementRequest) -> int | None:
        """Name the node; the view found it out."""
        node = self.context.get("node")
        return node.pk if node is not None else None
