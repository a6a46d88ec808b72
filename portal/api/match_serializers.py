"""Shapes of a DAG's stays at sites, and of the requests that end them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.serializers import ReasonSerializer
from wms.dags.models import MatchRecord
from wms.dags.services import MAX_AVOID_S

_MAX_ID = 2**63 - 1
#: So many DAGs are changed by one request.
_MAX_SELECTION = 1000


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


class SelectionRematchSerializer(RematchSerializer):
    """Which DAGs leave their sites, and how."""

    dags = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_MAX_ID),
        min_length=1,
        max_length=_MAX_SELECTION,
        help_text="The ids of the DAGs.",
    )


class SkippedDagSerializer(serializers.Serializer[Any]):
    """A DAG that was left as it is, because its state does not allow the change."""

    dag = serializers.IntegerField()
    state = serializers.CharField()


class SelectionResultSerializer(serializers.Serializer[Any]):
    """What was done with a selection of DAGs."""

    changed = serializers.ListField(child=serializers.IntegerField())
    skipped = SkippedDagSerializer(many=True)


class MatchRecordSerializer(serializers.ModelSerializer[MatchRecord]):
    """One stay of a DAG at a site."""

    site = serializers.CharField(source="site.name", read_only=True)

    class Meta:
        model = MatchRecord
        fields = [
            "id", "site", "matched_at", "dag_rank", "site_rank", "ended_at", "end", "reason",
            "avoided_until",
        ]  # fmt: skip
