"""Serializers of pilots: slot, core-seconds, node checks, attempts and events."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.shapes import EVENT_FIELDS, AmountsByNameField, EventSerializer, ObjectField
from portal.shared.slots import slot_of
from wms.jobs.models import Attempt
from wms.pilots.models import Pilot, PilotCheck, PilotEvent
from wms.pilots.program.checks import checks_of_pilot
from wms.pilots.testing.selectors import Verdict, verdict_of

#: Results of checks in a pilot's own answer; the rest are in a list of their own.
CHECKS_SHOWN = 100


class PilotEventSerializer(EventSerializer):
    """One change of a pilot."""

    class Meta:
        model = PilotEvent
        fields = EVENT_FIELDS


class PilotSerializer(serializers.ModelSerializer[Pilot]):
    """A pilot in a list. Its secrets stay where they are."""

    site = serializers.CharField(source="queue.site.name", read_only=True)
    queue = serializers.CharField(source="queue.name", read_only=True)
    node = ObjectField(read_only=True)
    unanswered = serializers.CharField(
        read_only=True,
        help_text="Why its batch system does not answer; empty once the pilot has called in.",
    )

    class Meta:
        model = Pilot
        fields = [
            "uuid", "site", "queue", "state", "state_since", "state_reason", "unanswered",
            "native_id", "node", "created_at", "registered_at", "heartbeat_at", "ended_at",
        ]  # fmt: skip


class AmountsSerializer(serializers.Serializer[Any]):
    """Amounts of cores, memory, GPUs and disk."""

    cores = serializers.IntegerField()
    memory_mb = serializers.IntegerField()
    gpus = serializers.IntegerField()
    disk_mb = serializers.IntegerField(
        allow_null=True, help_text="Null where it is not known; a queue offers none in all."
    )


class SlotSerializer(serializers.Serializer[Any]):
    """Slot of a pilot: amounts offered, given, held and free."""

    offered = AmountsSerializer(help_text="By its queue, as it is today.")
    given = AmountsSerializer(
        allow_null=True, help_text="By its batch system; null until the pilot calls in."
    )
    held = AmountsSerializer(help_text="By its open attempts.")
    free = AmountsSerializer(help_text="What of both nobody holds; nothing once it has ended.")


class NodeCheckSerializer(serializers.ModelSerializer[PilotCheck]):
    """Result of one check of a pilot's node."""

    metrics = ObjectField(read_only=True)

    class Meta:
        model = PilotCheck
        fields = [
            "name", "is_ok", "kind", "reason", "metrics", "skipped", "seconds", "created_at",
        ]  # fmt: skip


class PilotAccountsSerializer(serializers.Serializer[Any]):
    """Use of a pilot's core-seconds."""

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
    published = ObjectField(
        read_only=True, help_text="Attributes that checks published of its node, by check."
    )
    variables = ObjectField(
        read_only=True, help_text="Variables that checks published for payloads, by check."
    )
    test_verdict = serializers.SerializerMethodField(
        help_text="Of a test pilot on its queue, final once it has ended; else null."
    )

    owner = serializers.CharField(
        source="owner.username", default=None, read_only=True, allow_null=True
    )
    frontend = serializers.CharField(
        source="frontend.name",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="For whose jobs it was sent; null: for those of the default frontend.",
    )
    credential = serializers.CharField(
        source="credential.name",
        read_only=True,
        default=None,
        allow_null=True,
        help_text="With which it was submitted; null: with what its queue's settings name.",
    )
    owner_group = serializers.CharField(
        source="owner_group.name", default=None, read_only=True, allow_null=True
    )

    class Meta(PilotSerializer.Meta):
        fields = [
            *PilotSerializer.Meta.fields, "batch", "frontend", "credential", "owner",
            "owner_group", "slot", "load", "is_remote", "is_draining", "drain_reason", "accounts",
            "checks", "published", "variables", "test", "test_verdict", "batch_state",
            "batch_reason", "batch_since", "batch_node", "batch_exit_code",
        ]  # fmt: skip

    @extend_schema_field(PilotAccountsSerializer(allow_null=True))
    def get_accounts(self, pilot: Pilot) -> Any:
        """Use of its core-seconds."""
        return pilot.accounts

    @extend_schema_field(NodeCheckSerializer(many=True))
    def get_checks(self, pilot: Pilot) -> Any:
        """Results of the checks of its node."""
        return NodeCheckSerializer(checks_of_pilot(pilot)[:CHECKS_SHOWN], many=True).data

    @extend_schema_field(serializers.ChoiceField(Verdict.choices, allow_null=True))
    def get_test_verdict(self, pilot: Pilot) -> Verdict | None:
        """Verdict of a test pilot."""
        return verdict_of(pilot, list(checks_of_pilot(pilot))) if pilot.test else None

    @extend_schema_field(SlotSerializer)
    def get_slot(self, pilot: Pilot) -> Any:
        """Slot of the pilot."""
        return SlotSerializer(slot_of(pilot)).data


class PilotAttemptSerializer(serializers.ModelSerializer[Attempt]):
    """A try of a job, seen from its pilot."""

    job = serializers.IntegerField(source="job_id", read_only=True)
    usage = AmountsByNameField(source="whole_usage", read_only=True, allow_null=True)

    class Meta:
        model = Attempt
        fields = [
            "job", "number", "cores", "memory_mb", "gpus", "matched_at", "started_at", "ended_at",
            "outcome", "reason", "stopped_by", "usage",
        ]  # fmt: skip
