"""Serializers of accounting groups, submitters and concurrency limits with their use."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.frontends.fields import FrontendField
from portal.api.limits.shapes import OwnerField
from portal.api.shapes import StrictSerializer
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Frontend, Submitter
from wms.core.models import User


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
            "id", "place", "user", "group", "effective_priority", "real_priority", "factor",
            "used_slots", "used_slot_s", "charged_at",
        ]  # fmt: skip


class FactorSerializer(StrictSerializer):
    """The factor of a submitter."""

    factor = serializers.FloatField(help_text="At least 1; the smaller, the better the priority.")


class GroupSerializer(StrictSerializer, serializers.ModelSerializer[AccountingGroup]):
    """A group that shares the places with others; a point in its name leads to its parent."""

    frontend = FrontendField(
        "name", queryset=Frontend.objects.all(), allow_null=True, required=False, default=None,
        help_text="Whose pilots run its jobs; null: those of the default frontend.",
    )  # fmt: skip
    quota_kind = serializers.ChoiceField(
        AccountingGroup.QuotaKind.choices, required=False,
        default=AccountingGroup.QuotaKind.DYNAMIC, help_text="Unit of the quota.",
    )  # fmt: skip
    quota = serializers.FloatField(required=False, default=0.0)
    accepts_surplus = serializers.BooleanField(required=False, default=True)
    share = serializers.FloatField(required=False, default=1000.0)
    has_job_sharing = serializers.BooleanField(required=False, default=False)
    members = OwnerField(
        "username", queryset=User.objects.all(), many=True, required=False,
        help_text="Who may submit in its name; without it the members stay.",
    )  # fmt: skip
    used_slots = serializers.FloatField(
        read_only=True, help_text="Cores that its members use in its name now."
    )

    class Meta:
        model = AccountingGroup
        fields = [
            "name", "frontend", "quota_kind", "quota", "accepts_surplus", "share",
            "has_job_sharing", "members", "used_slots",
        ]  # fmt: skip
        # The domain tells what is wrong with the whole, with its field.
        extra_kwargs = {"name": {"validators": []}}


class LimitUseSerializer(serializers.Serializer[Any]):
    """Use of one limit by running DAGs."""

    name = serializers.CharField()
    used = serializers.FloatField()


class LimitSerializer(StrictSerializer, serializers.ModelSerializer[ConcurrencyLimit]):
    """A concurrency limit. Each name for which it holds is counted by itself."""

    maximum = serializers.FloatField()
    note = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    in_use = serializers.SerializerMethodField()

    class Meta:
        model = ConcurrencyLimit
        fields = ["name", "maximum", "note", "in_use"]
        # The domain tells what is wrong with the whole, with its field.
        extra_kwargs = {"name": {"validators": []}}

    @extend_schema_field(LimitUseSerializer(many=True))
    def get_in_use(self, limit: ConcurrencyLimit) -> list[dict[str, Any]]:
        """List the names; the view found out what is used."""
        uses: dict[str, float] = self.context["uses"].get(limit.name, {})
        return [{"name": name, "used": amount} for name, amount in uses.items()]
