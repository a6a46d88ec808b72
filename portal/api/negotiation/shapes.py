"""Serializers of negotiation cycles: what one did, its matches, and whom it left over."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from wms.dags.models import MatchRecord, NegotiationCycle


class CycleSerializer(serializers.ModelSerializer[NegotiationCycle]):
    """A negotiation cycle in a list."""

    duration_s = serializers.FloatField(help_text="Of all phases together.")
    requests = serializers.IntegerField(help_text="Idle DAGs that asked for a site.")
    autoclusters = serializers.IntegerField(help_text="Groups of DAGs that ask for the same.")
    bound = serializers.IntegerField(help_text="Matches that came true.")
    unmatched = serializers.IntegerField(help_text="DAGs that got no site.")

    class Meta:
        model = NegotiationCycle
        fields = [
            "id", "started_at", "duration_s", "publish_s", "read_s", "decide_s", "carry_out_s",
            "ads", "requests", "autoclusters", "matches", "bound", "unmatched",
        ]  # fmt: skip


class CycleMatchSerializer(serializers.ModelSerializer[MatchRecord]):
    """A match of a cycle."""

    dag = serializers.IntegerField(source="dag_id")
    site = serializers.CharField(source="site.name")

    class Meta:
        model = MatchRecord
        fields = ["dag", "site", "dag_rank", "site_rank", "ended_at", "end"]


class LeftOverSerializer(serializers.Serializer[Any]):
    """DAGs that got no site for one reason."""

    reason = serializers.CharField()
    count = serializers.IntegerField()
    dags = serializers.ListField(
        child=serializers.IntegerField(), help_text="Some of them, that you may see."
    )


class CycleDetailSerializer(CycleSerializer):
    """A negotiation cycle."""

    match_list = CycleMatchSerializer(
        many=True, help_text="Of DAGs that you may see, 1,000 at most."
    )
    left_over = LeftOverSerializer(
        many=True, help_text="The most frequent reasons; kept for a day."
    )

    class Meta(CycleSerializer.Meta):
        fields = [*CycleSerializer.Meta.fields, "match_list", "left_over"]
