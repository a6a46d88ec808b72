"""Serializers of jobs, attempts, pilots, events, findings and problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.shared.slots import slot_of
from wms.core.models import AuditEntry, EventRecord
from wms.jobs.models import Attempt, AttemptFile, Job, JobEvent
from wms.pilots.models import Pilot, PilotCheck, PilotEvent
from wms.pilots.program.checks import checks_of_pilot
from wms.pilots.selectors import PilotOfAttempt
from wms.sites.models import SiteEvent

#: Results of checks in a pilot's own answer; the rest are in a list of their own.
CHECKS_SHOWN = 100

_JSON_OBJECT = {"type": "object", "additionalProperties": {}}
_AMOUNTS_BY_NAME = {"type": "object", "additionalProperties": {"type": "number"}}
_TEXTS_BY_NAME = {"type": "object", "additionalProperties": {"type": "string"}}
_NEEDS = {
    "type": "object",
    "properties": {
        "owner": {"type": "string"},
        "owner_group": {"type": "string"},
        "cpu_time_s": {"type": "integer"},
        **{name: {"type": "integer"} for name in ("cores", "max_cores", "memory_mb", "gpus")},
        **{
            name: {"type": "array", "items": {"type": "string"}}
            for name in (
                "sites",
                "banned_sites",
                "queues",
                "platforms",
                "pilot_types",
                "submit_pools",
                "middlewares",
                "tags",
            )
        },
        **{name: {"type": "string"} for name in ("setup", "job_type", "requirements")},
    },
}


@extend_schema_field(_JSON_OBJECT)
class ObjectField(serializers.JSONField):
    """A JSON object with any content."""


@extend_schema_field(_TEXTS_BY_NAME)
class TextsByNameField(serializers.JSONField):
    """A JSON object of texts."""


@extend_schema_field(_AMOUNTS_BY_NAME)
class AmountsByNameField(serializers.JSONField):
    """A JSON object of numbers."""


@extend_schema_field(_NEEDS)
class NeedsField(serializers.JSONField):
    """What a job needs of the place where it runs."""


class FindingSerializer(serializers.Serializer[Any]):
    """One fault of an input: what is wrong, and where."""

    file = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField(allow_null=True)
    command = serializers.CharField(
        allow_blank=True, help_text="The command of a DAG file that is at fault, in capitals."
    )
    field = serializers.CharField(allow_blank=True)
    message = serializers.CharField(help_text="What is wrong with it.")
    column = serializers.IntegerField(allow_null=True, help_text="In the line, from 1 on.")


class ProblemSerializer(serializers.Serializer[Any]):
    """Why a request was refused (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    findings = FindingSerializer(many=True)
    request_id = serializers.CharField(help_text="As it stands in the log and in X-Request-ID.")


class StrictSerializer(serializers.Serializer[Any]):
    """A body in which an unknown name is a fault: it may be a misspelt one that matters."""

    def to_internal_value(self, data: Any) -> Any:
        """The values. Raises ValidationError for names that nobody asked for."""
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            writable = (name for name, field in self.fields.items() if not field.read_only)
            known = ", ".join(writable)
            raise serializers.ValidationError(
                {name: [f"unknown; known are {known}"] for name in unknown}
            )
        return super().to_internal_value(data)


class ReasonSerializer(StrictSerializer):
    """The body of a steering request."""

    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=1000,
        help_text="Recorded with the change; needed for all but a release.",
    )  # fmt: skip


class EventSerializer(serializers.ModelSerializer[EventRecord]):
    """What all events have in common."""

    facts = ObjectField(read_only=True)


EVENT_FIELDS = ["id", "event", "from_state", "to_state", "actor", "reason", "facts", "created_at"]
#: Of what has causes: code decides by them, and never by the words of a reason.
CAUSED_EVENT_FIELDS = [*EVENT_FIELDS, "cause"]


class JobEventSerializer(EventSerializer):
    """One change of a job."""

    class Meta:
        model = JobEvent
        fields = CAUSED_EVENT_FIELDS


class PilotEventSerializer(EventSerializer):
    """One change of a pilot."""

    class Meta:
        model = PilotEvent
        fields = EVENT_FIELDS


class SiteEventSerializer(EventSerializer):
    """One change of a site."""

    class Meta:
        model = SiteEvent
        fields = EVENT_FIELDS


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """Who did what to which object, and why."""

    facts = ObjectField(
        read_only=True, help_text="Of a change: each field with its old and new value."
    )

    class Meta:
        model = AuditEntry
        fields = [
            "id", "created_at", "actor", "action", "target", "object_kind", "object_key", "reason",
            "request_id", "facts",
        ]  # fmt: skip
        read_only_fields = fields


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


class PilotSerializer(serializers.ModelSerializer[Pilot]):
    """A pilot in a list. Its secrets stay where they are."""

    site = serializers.CharField(source="queue.site.name", read_only=True)
    queue = serializers.CharField(source="queue.name", read_only=True)
    node = ObjectField(read_only=True)

    class Meta:
        model = Pilot
        fields = [
            "uuid", "site", "queue", "state", "state_since", "state_reason", "native_id", "node",
            "created_at", "registered_at", "heartbeat_at", "ended_at",
        ]  # fmt: skip


class AmountsSerializer(serializers.Serializer[Any]):
    """So much of what jobs need."""

    cores = serializers.IntegerField()
    memory_mb = serializers.IntegerField()
    gpus = serializers.IntegerField()


class SlotSerializer(serializers.Serializer[Any]):
    """What a pilot has to give to jobs."""

    offered = AmountsSerializer(help_text="By its queue, as it is today.")
    given = AmountsSerializer(
        allow_null=True, help_text="By its batch system; null until the pilot calls in."
    )
    held = AmountsSerializer(help_text="By its open attempts.")
    free = AmountsSerializer(help_text="What of both nobody holds; nothing once it has ended.")


class NodeCheckSerializer(serializers.ModelSerializer[PilotCheck]):
    """What one check found on a pilot's node."""

    metrics = ObjectField(read_only=True)

    class Meta:
        model = PilotCheck
        fields = ["name", "is_ok", "kind", "reason", "metrics", "seconds", "created_at"]


class FailedCheckSerializer(NodeCheckSerializer):
    """A check that a node of a site failed, with the pilot that found it."""

    pilot = serializers.UUIDField(source="pilot.uuid", read_only=True)
    queue = serializers.CharField(source="pilot.queue.name", read_only=True)
    host = serializers.SerializerMethodField(help_text="Empty where the pilot did not tell.")

    class Meta(NodeCheckSerializer.Meta):
        fields = [*NodeCheckSerializer.Meta.fields, "pilot", "queue", "host"]

    def get_host(self, check: PilotCheck) -> str:
        """Name the node."""
        return str(check.pilot.node.get("hostname", ""))


class PilotAccountsSerializer(serializers.Serializer[Any]):
    """What became of a pilot's core-seconds."""

    cores = serializers.IntegerField()
    lifetime_s = serializers.FloatField()
    validation_s = serializers.FloatField()
    core_seconds = AmountsByNameField(help_text="pilot, usable, used, good")
    permille = AmountsByNameField(help_text="Waste: validation, idle, nosuccess, badput")


class PilotDetailSerializer(PilotSerializer):
    """A pilot with its slot, its batch, whose it is, if it is private, and its accounts."""

    slot = serializers.SerializerMethodField()
    load = AmountsByNameField(read_only=True, allow_null=True)
    accounts = serializers.SerializerMethodField(
        help_text="Null until the pilot has ended, and some seconds longer."
    )
    checks = serializers.SerializerMethodField(help_text=f"The first {CHECKS_SHOWN} results.")

    owner = serializers.CharField(
        source="owner.username", default=None, read_only=True, allow_null=True
    )
    owner_group = serializers.CharField(
        source="owner_group.name", default=None, read_only=True, allow_null=True
    )

    class Meta(PilotSerializer.Meta):
        fields = [
            *PilotSerializer.Meta.fields, "batch", "owner", "owner_group", "slot", "load",
            "is_draining", "drain_reason", "accounts", "checks",
        ]  # fmt: skip

    @extend_schema_field(PilotAccountsSerializer(allow_null=True))
    def get_accounts(self, pilot: Pilot) -> Any:
        """Tell what became of its core-seconds."""
        return pilot.accounts

    @extend_schema_field(NodeCheckSerializer(many=True))
    def get_checks(self, pilot: Pilot) -> Any:
        """Tell what checks of its node found."""
        return NodeCheckSerializer(checks_of_pilot(pilot)[:CHECKS_SHOWN], many=True).data

    @extend_schema_field(SlotSerializer)
    def get_slot(self, pilot: Pilot) -> Any:
        """Tell what it has to give to jobs."""
        return SlotSerializer(slot_of(pilot)).data


class PilotAttemptSerializer(serializers.ModelSerializer[Attempt]):
    """A try of a job, seen from its pilot."""

    job = serializers.IntegerField(source="job_id", read_only=True)
    usage = AmountsByNameField(read_only=True, allow_null=True)

    class Meta:
        model = Attempt
        fields = [
            "job", "number", "cores", "memory_mb", "gpus", "matched_at", "started_at", "ended_at",
            "outcome", "reason", "stopped_by", "usage",
        ]  # fmt: skip
