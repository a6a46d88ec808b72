"""Serializers of kept archives of DAGs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes import NumbersByNameField, ObjectField
from wms.archives.models import ArchivedDag


class ArchiveSerializer(serializers.ModelSerializer[ArchivedDag]):
    """A kept archive in a list."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:archive", lookup_url_kwarg="archive_id"
    )
    dag = serializers.IntegerField(source="dag_id", help_text="Number of the DAG where it was.")
    owner = serializers.CharField(source="owner_name")
    accounting_group = serializers.CharField(source="group_name", allow_blank=True)
    nodes = NumbersByNameField(source="node_counts", help_text="Nodes of the DAG by state.")
    size_bytes = serializers.IntegerField(source="blob.size_bytes")
    sha256 = serializers.CharField(source="blob_id")

    class Meta:
        model = ArchivedDag
        fields = [
            "id", "url", "dag", "name", "owner", "accounting_group", "state", "nodes",
            "submitted_at", "ended_at", "is_foreign", "installation", "product_version",
            "size_bytes", "sha256", "imported_at", "imported_by",
        ]  # fmt: skip


class ArchiveDetailSerializer(ArchiveSerializer):
    """A kept archive with what its manifest tells."""

    jobs = NumbersByNameField(source="job_counts", help_text="Jobs by state, of inner DAGs, too.")
    rows = NumbersByNameField(source="row_counts", help_text="Rows of the file by kind.")
    failures = serializers.ListField(
        child=ObjectField(), help_text="The first events by which nodes failed, as they are rows."
    )

    class Meta(ArchiveSerializer.Meta):
        fields = [
            *ArchiveSerializer.Meta.fields, "state_reason", "jobs", "rows", "failures",
        ]  # fmt: skip


class MemberSerializer(serializers.Serializer[Any]):
    """A member of an archive."""

    name = serializers.CharField()
    sha256 = serializers.CharField()
    size_bytes = serializers.IntegerField(help_text="Unpacked.")
    rows = serializers.IntegerField(allow_null=True, help_text="Null for what has no rows.")
