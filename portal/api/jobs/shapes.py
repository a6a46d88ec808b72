"""Serializers of jobs, their events, attempts, and files that attempts sent back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.shapes import (
    CAUSED_EVENT_FIELDS,
    AmountsByNameField,
    EventSerializer,
    InputsSerializer,
    NeedsField,
    ObjectField,
    TextsByNameField,
)
from wms.jobs.binding.late_values import show_latest
from wms.jobs.input_data.wanted import Located
from wms.jobs.models import Attempt, AttemptFile, Job, LoggedJobEvent
from wms.pilots.selectors import PilotOfAttempt


class JobEventSerializer(EventSerializer):
    """One change of a job."""

    class Meta:
        model = LoggedJobEvent
        fields = CAUSED_EVENT_FIELDS


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job in a list."""

    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = Job
        fields = [
            "id", "name", "owner", "state", "state_since", "state_reason", "state_cause",
            "cluster_id", "process", "attempt_number", "max_attempts", "not_before", "created_at",
        ]  # fmt: skip


class AttemptFileSerializer(serializers.ModelSerializer[AttemptFile]):
    """A file that an attempt sent back."""

    size_bytes = serializers.IntegerField(source="blob.size_bytes", read_only=True)
    sha256 = serializers.CharField(source="blob_id", read_only=True)

    class Meta:
        model = AttemptFile
        fields = ["kind", "path", "size_bytes", "sha256"]


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One try of a job in one pilot."""

    pilot = serializers.SerializerMethodField(help_text="The pilot's uuid.")
    fence = serializers.SerializerMethodField(
        help_text="What kept the payload from pilot and node; none: nothing; empty: not told."
    )
    usage = AmountsByNameField(
        source="whole_usage",
        read_only=True,
        allow_null=True,
        help_text="What it used, in seconds and MB.",
    )
    transferring = serializers.ChoiceField(
        choices=["", "inputs", "outputs"],
        read_only=True,
        help_text="What its pilot moves by URL now, as its latest heartbeat tells.",
    )
    files = AttemptFileSerializer(many=True, read_only=True)

    class Meta:
        model = Attempt
        fields = [
            "number", "pilot", "site_name", "host", "fence", "cores", "memory_mb", "gpus",
            "matched_at", "started_at", "ended_at", "outcome", "reason", "stopped_by", "exit_code",
            "signal", "wall_s", "cpu_s", "max_rss_mb", "usage", "transferring",
            "files",
        ]  # fmt: skip

    def get_pilot(self, attempt: Attempt) -> str | None:
        """Name the pilot as everywhere in the API; the view found out the names."""
        pilot = self._pilots.get(attempt.pilot_id)
        return str(pilot.uuid) if pilot is not None else None

    def get_fence(self, attempt: Attempt) -> str:
        """Name the fence that its pilot puts around payloads."""
        pilot = self._pilots.get(attempt.pilot_id)
        return pilot.fence if pilot is not None else ""

    @property
    def _pilots(self) -> Mapping[int, PilotOfAttempt]:
        pilots: Mapping[int, PilotOfAttempt] = self.context.get("pilots", {})
        return pilots


def _texts() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), read_only=True)


class JobDetailSerializer(JobSerializer):
    """A job with its payload and its attempts."""

    dag = serializers.SerializerMethodField(help_text="The DAG that it serves, if any.")
    needs = NeedsField(read_only=True)
    avoided_hosts = serializers.ListField(
        child=serializers.CharField(), read_only=True,
        help_text="Worker nodes that have failed it: other ones get it first.",
    )  # fmt: skip
    executable = serializers.CharField(read_only=True)
    arguments = _texts()
    environment = TextsByNameField(read_only=True)
    input_files = _texts()
    output_files = _texts()
    stdout_name = serializers.CharField(read_only=True, help_text="Name in the workspace.")
    stderr_name = serializers.CharField(read_only=True, help_text="Name in the workspace.")
    attributes = ObjectField(read_only=True)
    wall_limit_s = serializers.IntegerField(read_only=True)
    directives = ObjectField(
        read_only=True, allow_null=True,
        help_text="What its description says of its run: standard input, new names of outputs, "
        "limits of duration, checkpoint, notices; only what it says, null for nothing.",
    )  # fmt: skip
    late = serializers.SerializerMethodField(
        help_text="Commands that the claim fills in for the site of its pilot, while none has."
    )
    inputs = serializers.SerializerMethodField(
        help_text="Where its input data are now; null where it names no logical file."
    )
    attempts = AttemptSerializer(many=True, read_only=True)
    events = JobEventSerializer(many=True, read_only=True)

    class Meta(JobSerializer.Meta):
        fields = [
            *JobSerializer.Meta.fields, "dag", "needs", "avoided_hosts", "priority", "executable",
            "arguments", "environment", "input_files", "output_files", "stdout_name", "stderr_name",
            "attributes", "directives", "wall_limit_s", "late", "inputs", "attempts", "events",
        ]  # fmt: skip

    def to_representation(self, instance: Job) -> dict[str, Any]:
        """The job as its latest attempt ran it."""
        self._late = show_latest(instance)
        return super().to_representation(instance)

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_late(self, job: Job) -> dict[str, str]:
        """Texts by their commands."""
        return self._late

    @extend_schema_field(InputsSerializer(allow_null=True))
    def get_inputs(self, job: Job) -> Any:
        """Places of the inputs, which the view found out."""
        found: Located | None = self.context.get("inputs")
        return None if found is None else InputsSerializer(found).data

    def get_dag(self, job: Job) -> int | None:
        """Name the DAG; the view found it out."""
        dag_id: int | None = self.context.get("dag_id")
        return dag_id
