"""Serializers of accounting groups, submitters and concurrency limits with their use."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter


class SubmitterSerializer(serializers.ModelSerializer[Submitter]):
    """Submitter who is charged: a user, alone or for a group."""

    place = serializers.IntegerField(help_text="In the order in which they are served, from 1.")
    user = serializers.CharField(source="user.username", read_only=True)
    group = serializers.CharField(
        source="group.name", default=None, read_only=True, allow_null=True
    )
    effective_priority = serializers.FloatField(
        help_text="The real one times the factor; smaller is better."
    )

    class Meta:
        model = Submitter
        fields = [
            "place", "user", "group", "effective_priority", "real_priority", "factor",
            "used_slots", "used_slot_s", "charged_at",
        ]  # fmt: skip


class GroupSerializer(serializers.ModelSerializer[AccountingGroup]):
    """A group that shares the places with others; a point in its name leads to its parent."""

    frontend = serializers.CharField(
        source="frontend.name",
        default=None,
        allow_null=True,
        help_text="Whose pilots run its jobs; null: those of the default frontend.",
    )
    members = serializers.SlugRelatedField("username", many=True, read_only=True)
    used_slots = serializers.FloatField(help_text="Cores that its members use in its name now.")

    class Meta:
        model = AccountingGroup
        fields = [
            "name", "frontend", "quota_kind", "quota", "accepts_surplus", "share",
            "has_job_sharing", "members", "used_slots",
        ]  # fmt: skip


class LimitUseSerializer(serializers.Serializer[Any]):
    """Use of one limit by running DAGs."""

    name = serializers.CharField()
    used = serializers.FloatField()


class LimitSerializer(serializers.ModelSerializer[ConcurrencyLimit]):
    """A concurrency limit. Each name for which it holds is counted by itself."""

    in_use = serializers.SerializerMethodField()

    class Meta:
        model = ConcurrencyLimit
        fields = ["name", "maximum", "note", "in_use"]

    @extend_schema_field(LimitUseSerializer(many=True))
    def get_in_use(self, limit: ConcurrencyLimit) -> list[dict[str, Any]]:
        """List the names; the view found out what is used."""
        uses: dict[str, float] = self.context["uses"].get(limit.name, {})
        return [{"name": name, "used": amount} for name, amount in uses.items()]
