"""Serializers of a DAG's matches with sites, and of rematch requests."""

from __future__ import annotations

from rest_framework import serializers

from wms.dags.models import MatchRecord


class MatchRecordSerializer(serializers.ModelSerializer[MatchRecord]):
    """One stay of a DAG at a site."""

    site = serializers.CharField(source="site.name", read_only=True)

    class Meta:
        model = MatchRecord
        fields = [
            "id", "site", "matched_at", "dag_rank", "site_rank", "ended_at", "end", "reason",
            "avoided_until",
        ]  # fmt: skip
