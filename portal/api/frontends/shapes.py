"""Serializers of frontends, of their entries at queues, and of how these entries stand."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.frontends.fields import FrontendField, QueueField
from portal.api.shapes import StrictSerializer
from portal.api.sites.pressure import RequestSerializer
from wms.accounting.models import Frontend
from wms.pilots.frontends.standing import EntryStanding
from wms.sites.frontends.models import FrontendEntry


class FrontendSerializer(StrictSerializer, serializers.ModelSerializer[Frontend]):
    """Frontend: a collaboration that has pilots of its own."""

    description = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False, default=""
    )
    start_expression = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False, default=""
    )
    is_enabled = serializers.BooleanField(required=False, default=True)
    groups = serializers.SlugRelatedField("name", many=True, read_only=True)

    class Meta:
        model = Frontend
        fields = ["id", "name", "description", "start_expression", "is_enabled", "groups"]
        # The domain tells what is wrong with the whole, with its field.
        extra_kwargs = {"name": {"validators": []}}


class FrontendEntrySerializer(StrictSerializer, serializers.ModelSerializer[FrontendEntry]):
    """Entry of a frontend at a queue: its share and its limits there."""

    frontend = FrontendField(
        "name", queryset=Frontend.objects.all(), allow_null=True, required=False, default=None,
        help_text="Null: the default frontend.",
    )  # fmt: skip
    queue = QueueField(help_text="As SITE/QUEUE.")
    share = serializers.FloatField(required=False, default=1.0)
    max_pilots = serializers.IntegerField(allow_null=True, required=False, default=None)
    max_queued_pilots = serializers.IntegerField(allow_null=True, required=False, default=None)
    start_expression = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False, default=""
    )

    class Meta:
        model = FrontendEntry
        fields = [
            "id", "queue", "frontend", "share", "max_pilots", "max_queued_pilots",
            "start_expression",
        ]  # fmt: skip
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []


class EntryStandingSerializer(serializers.Serializer[EntryStanding]):
    """Entry of a frontend as it stands now."""

    site = serializers.CharField(source="entry.queue.site.name")
    queue = serializers.CharField(source="entry.queue.name")
    share = serializers.FloatField(source="entry.share")
    max_pilots = serializers.IntegerField(source="entry.max_pilots")
    max_queued_pilots = serializers.IntegerField(source="entry.max_queued")
    share_due = serializers.FloatField(
        help_text="Per cent of the queue's places, among the frontends whose jobs wait for it."
    )
    share_now = serializers.FloatField(help_text="Per cent of the living pilots in the queue.")
    queued = serializers.IntegerField()
    running = serializers.IntegerField()
    stalled = serializers.IntegerField()
    credential = serializers.CharField(
        source="credential.name",
        default=None,
        allow_null=True,
        help_text="With which its pilots are submitted; null: with what the queue's settings name.",
    )
    request = RequestSerializer(
        allow_null=True, help_text="Null before the director has looked at the entry."
    )
    reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What keeps pilots back now."
    )
