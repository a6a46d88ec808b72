"""Serializers of a DAG's matches with sites, and of rematch requests."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.shapes.common import ReasonSerializer
from wms.dags.models import MatchRecord
from wms.dags.services.dags import MAX_AVOID_S


class RematchSerializer(ReasonSerializer):
    """How a DAG leaves its site."""

    lets_finish = serializers.BooleanField(
        required=False, default=False,
        help_text="What runs may finish where it is; otherwise it is stopped.",
    )  # fmt: skip
    avoid_s = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=0, max_value=MAX_AVOID_S,
        help_text="So long the DAG does not come back to the site; by default that of the policy.",
    )  # fmt: skip


class MatchRecordSerializer(serializers.ModelSerializer[MatchRecord]):
    """One stay of a DAG at a site."""

    site = serializers.CharField(source="site.name", read_only=True)

    class Meta:
        model = MatchRecord
        fields = [
            "id", "site", "matched_at", "dag_rank", "site_rank", "ended_at", "end", "reason",
            "avoided_until",
        ]  # fmt: skip
