"""Serializers of trials: what is sent, progress, report."""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.shapes import ObjectField
from wms.dags.models import Trial


class SentFilesSerializer(serializers.Serializer[Any]):
    """DAG files and others, as multipart/form-data. Names may have directories."""

    dag = serializers.ListField(
        child=serializers.FileField(),
        help_text="The DAG file; several run as one DAG. As a text: the path of one in `archive`.",
    )
    file = serializers.ListField(
        child=serializers.FileField(),
        required=False,
        help_text="Every other file. Of inputs and programs the name is enough: they may be empty.",
    )
    archive = serializers.FileField(
        required=False, help_text="Many files as one: zip, tar, or tar packed by gzip."
    )
    directory = serializers.CharField(required=False, help_text="As in a submission.")
    root = serializers.CharField(required=False, help_text="As in a submission.")
    use_dag_dir = serializers.BooleanField(required=False, help_text="As in a submission.")


class CheckTrialSerializer(SentFilesSerializer):
    """The parts of a check, as multipart/form-data."""

    allow_missing = serializers.BooleanField(
        required=False, help_text="Files that are not there are warnings."
    )
    dagman = serializers.BooleanField(
        required=False, help_text="What plain DAGMan does not know is a fault."
    )


class DryRunTrialSerializer(SentFilesSerializer):
    """The parts of a dry run, as multipart/form-data."""

    behaviour = serializers.CharField(
        required=False,
        help_text="The behaviour file, a JSON object: how nodes end, how long they take.",
    )


class TrialSerializer(serializers.ModelSerializer[Trial]):
    """A trial with its progress."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    url = serializers.HyperlinkedIdentityField(
        view_name="api:trial", lookup_url_kwarg="trial_id", help_text="Where its progress is told."
    )

    class Meta:
        model = Trial
        fields = [
            "id", "url", "kind", "owner", "state", "state_since", "state_reason", "size_bytes",
            "node_count", "ended_count", "created_at", "started_at", "ended_at",
        ]  # fmt: skip


class TrialDetailSerializer(TrialSerializer):
    """A trial with its report, which is there when its state is `done`."""

    report = serializers.SerializerMethodField()

    class Meta(TrialSerializer.Meta):
        fields = [*TrialSerializer.Meta.fields, "exit_code", "report", "text"]

    @extend_schema_field(ObjectField(allow_null=True))
    def get_report(self, trial: Trial) -> Any:
        """Report, as the command prints it with `--json`; null until it is done."""
        return json.loads(trial.report) if trial.report else None
