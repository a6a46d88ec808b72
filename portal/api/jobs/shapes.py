"""Serializers of jobs, their attempts, files and events."""

from __future__ import annotations

from collections.abc import Mapping

from rest_framework import serializers

from portal.api.shapes import (
    CAUSED_EVENT_FIELDS,
    AmountsByNameField,
    EventSerializer,
    NeedsField,
    ObjectField,
    TextsByNameField,
)
from wms.jobs.models import Attempt, AttemptFile, Job, JobEvent
from wms.pilots.selectors import PilotOfAttempt


class JobEventSerializer(EventSerializer):
    """One change of a job."""

    class Meta:
        model = JobEvent
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
        read_only=True, allow_null=True, help_text="What it used, in seconds and MB."
    )
    files = AttemptFileSerializer(many=True, read_only=True)

    class Meta:
        model = Attempt
        fields = [
            "number", "pilot", "site_name", "host", "fence", "cores", "memory_mb", "gpus",
            "matched_at", "started_at", "ended_at", "outcome", "reason", "stopped_by", "exit_code",
            "signal", "wall_s", "cpu_s", "max_rss_mb", "usage", "files",
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


class JobDetailSerializer(JobSerializer):
    """A job with its payload and its attempts."""

    dag = serializers.SerializerMethodField(help_text="The DAG that it serves, if any.")
    needs = NeedsField(read_only=True)
    avoided_hosts = serializers.ListField(
        child=serializers.CharField(), read_only=True,
        help_text="Worker nodes that have failed it: other ones get it first.",
    )  # fmt: skip
    environment = TextsByNameField(read_only=True)
    attributes = ObjectField(read_only=True)
    attempts = AttemptSerializer(many=True, read_only=True)
    events = JobEventSerializer(many=True, read_only=True)

    class Meta(JobSerializer.Meta):
        fields = [
            *JobSerializer.Meta.fields, "dag", "needs", "avoided_hosts", "priority", "executable",
            "arguments", "environment", "input_files", "output_files", "stdout_name", "stderr_name",
            "attributes", "wall_limit_s", "attempts", "events",
        ]  # fmt: skip

    def get_dag(self, job: Job) -> int | None:
        """Name the DAG; the view found it out."""
        dag_id: int | None = self.context.get("dag_id")
        return dag_id
