"""Serializers of failure groups: list, and detail with counts by site and hour."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from wms.failures.models import FailureGroup


class FailureGroupSerializer(serializers.ModelSerializer[FailureGroup]):
    """Failures of one kind of thing with one cause."""

    class Meta:
        model = FailureGroup
        fields = [
            "id", "kind", "text", "sample", "category", "state", "state_since", "state_reason",
            "total", "first_seen", "last_seen",
        ]  # fmt: skip


class SiteCountSerializer(serializers.Serializer[Any]):
    """Number of failures of a group at a site in the window."""

    site = serializers.CharField(help_text="Empty for what happened at none.")
    count = serializers.IntegerField()


class FailureGroupDetailSerializer(FailureGroupSerializer):
    """A group with its counts."""

    count = serializers.SerializerMethodField(help_text="In the window that was asked for.")
    sites = serializers.SerializerMethodField()
    last_hours = serializers.SerializerMethodField(
        help_text="How often in each of the last 24 hours, the oldest first."
    )

    class Meta(FailureGroupSerializer.Meta):
        fields = [*FailureGroupSerializer.Meta.fields, "count", "sites", "last_hours"]

    def get_count(self, group: FailureGroup) -> int:
        """The sum over the sites."""
        return sum(count for _, count in self.context["sites"])

    @extend_schema_field(SiteCountSerializer(many=True))
    def get_sites(self, group: FailureGroup) -> list[dict[str, Any]]:
        """The sites of the window, those of most failures first."""
        return [{"site": site, "count": count} for site, count in self.context["sites"]]

    def get_last_hours(self, group: FailureGroup) -> list[int]:
        """The trend that its page draws."""
        return list(self.context["trend"].counts)
