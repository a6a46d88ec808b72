"""Serializers of placement requests, and of limits that DAGs share."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes.common import (
    EVENT_FIELDS,
    EventSerializer,
    StrictSerializer,
    TextsByNameField,
)
from portal.api.shapes.task_queues import SiteField
from wms.core.models import User
from wms.dags.models import SharedLimit
from wms.placement.models import PlacementAttempt, PlacementEvent, PlacementRequest
from wms.sites.models import Site


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


class OwnerField(serializers.SlugRelatedField[User]):
    """A user by name."""

    def to_internal_value(self, data: Any) -> User:
        """The user. No name has a null character, with which PostgreSQL cannot compare."""
        user: User = super().to_internal_value(str(data).replace("\0", "?"))
        return user


class SharedLimitSerializer(StrictSerializer, serializers.ModelSerializer[SharedLimit]):
    """How many nodes may be submitted at once over all DAGs of a user, at a site, or both.

    With a category it counts the nodes of that category only.
    """

    owner = OwnerField(
        "username", queryset=User.objects.all(), allow_null=True, required=False, default=None
    )
    site = SiteField(
        "name", queryset=Site.objects.all(), allow_null=True, required=False, default=None
    )
    category = serializers.CharField(max_length=255, allow_blank=True, required=False, default="")
    max_jobs = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    note = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    submitted = serializers.IntegerField(
        read_only=True, help_text="Nodes that are submitted now, of those that it counts."
    )

    class Meta:
        model = SharedLimit
        fields = ["id", "owner", "site", "category", "max_jobs", "note", "submitted"]
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []
