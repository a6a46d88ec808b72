"""Serializers of placement requests, their attempts and events, and of their submission."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from portal.api.shapes import (
    EVENT_FIELDS,
    EventSerializer,
    StrictSerializer,
    TextsByNameField,
)
from wms.placement.models import PlacementAttempt, PlacementEvent, PlacementRequest
from wms.placement.storages.waiting import why_it_waits
from wms.placement.ways.ordering import Why
from wms.placement.ways.telling import told_choice


class PlacementRequestSerializer(serializers.ModelSerializer[PlacementRequest]):
    """A request to bring a file from one place to another, or for other work on storage."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    source_storage = serializers.CharField(
        source="source_storage.name", default=None, read_only=True, allow_null=True,
        help_text="Name of the storage in which the source lies.",
    )  # fmt: skip
    destination_storage = serializers.CharField(
        source="destination_storage.name", default=None, read_only=True, allow_null=True
    )

    class Meta:
        model = PlacementRequest
        fields = [
            "id", "kind", "owner", "source_url", "destination_url", "source_storage",
            "destination_storage", "choice", "host", "allocation_name", "state", "state_since",
            "state_reason", "attempt_number", "max_attempts", "due_at", "created_at", "ended_at",
        ]  # fmt: skip


class WaySerializer(serializers.Serializer[Any]):
    """A way of a transfer, and how its latest attempts of a day did when it was chosen."""

    source_end = serializers.CharField(help_text="Storage, or the host of what is in none.")
    destination_end = serializers.CharField()
    source_scheme = serializers.CharField()
    destination_scheme = serializers.CharField()
    tries = serializers.IntegerField()
    successes = serializers.IntegerField()
    bytes_per_s = serializers.FloatField(allow_null=True)
    is_untried = serializers.BooleanField(help_text="Too little is known of late to judge by.")


class WayChoiceSerializer(serializers.Serializer[Any]):
    """The way of an attempt, first, and those that it was chosen before."""

    cause = serializers.ChoiceField(choices=[each.value for each in Why])
    ways = WaySerializer(many=True)


class PlacementAttemptSerializer(serializers.ModelSerializer[PlacementAttempt]):
    """One try of a request."""

    bytes_per_s = serializers.FloatField(
        read_only=True, allow_null=True, help_text="Throughput, of one that has brought a file."
    )
    choice = WayChoiceSerializer(
        read_only=True, allow_null=True,
        help_text="Why this way, where there was more than one; null else.",
    )  # fmt: skip
    choice_told = serializers.SerializerMethodField(help_text="The choice in words.")

    class Meta:
        model = PlacementAttempt
        fields = [
            "number", "source_scheme", "destination_scheme", "source_url", "destination_url",
            "source_end", "destination_end", "choice", "choice_told", "started_at", "ended_at",
            "exit_code", "message", "note", "size_bytes", "bytes_per_s",
        ]  # fmt: skip

    def get_choice_told(self, attempt: PlacementAttempt) -> str:
        """Words for the codes and figures."""
        return told_choice(attempt.choice)


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
    waits_because = serializers.SerializerMethodField(
        help_text="What is against beginning it, although it is due; empty where nothing is."
    )

    class Meta(PlacementRequestSerializer.Meta):
        fields = [
            *PlacementRequestSerializer.Meta.fields, "dag", "node", "waits_because", "leader",
            "directory", "arguments", "alternatives", "expected_sha256", "expected_md5",
            "expected_adler32", "expected_bytes", "duration_s", "attributes", "attempts", "events",
        ]  # fmt: skip

    def get_dag(self, request: PlacementRequest) -> int | None:
        """Name the DAG; the view found it out."""
        node = self.context.get("node")
        return node.dag_id if node is not None else None

    def get_waits_because(self, request: PlacementRequest) -> str:
        """Reason why it has not begun."""
        return why_it_waits(request, timezone.now())

    def get_node(self, request: PlacementRequest) -> int | None:
        """Name the node; the view found it out."""
        node = self.context.get("node")
        return node.pk if node is not None else None


class PlacementSubmissionSerializer(StrictSerializer, serializers.Serializer[Any]):
    """Requests as one text of one or many ads."""

    requests = serializers.CharField(
        trim_whitespace=False, help_text="One ad, or many in brackets, one after the other."
    )
    group = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=64,
        help_text="One of your groups, in whose name they are submitted.",
    )  # fmt: skip
    only_check = serializers.BooleanField(
        required=False, default=False, help_text="Tell the faults and store nothing."
    )


class SubmittedPlacementsSerializer(serializers.Serializer[Any]):
    """Ids of the requests in the order of their ads; none if they were only checked."""

    ids = serializers.ListField(child=serializers.IntegerField())
    count = serializers.IntegerField(help_text="How many ads the text has.")
