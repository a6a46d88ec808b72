"""Serializers of the pilot pressure on a queue."""

from __future__ import annotations

from rest_framework import serializers

from wms.pilots.pressure.selectors import Pressure
from wms.pilots.pressure_models import ElementContact, PressureRecord, PressureRequest


class RequestSerializer(serializers.ModelSerializer[PressureRequest]):
    """What the queue is asked for, and what its last turn did."""

    reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What cut wanted down to granted."
    )
    turn_reasons = serializers.ListField(
        child=serializers.CharField(), help_text="What cut granted down to submitted."
    )

    class Meta:
        model = PressureRequest
        fields = [
            "waiting_jobs", "wanted", "granted", "ceiling", "reasons", "updated_at", "lease_until",
            "submitted", "turn_reasons", "served_at",
        ]  # fmt: skip


class ContactSerializer(serializers.ModelSerializer[ElementContact]):
    """A kind of question that the batch system does not answer as it should."""

    class Meta:
        model = ElementContact
        fields = ["kind", "failures", "failing_since", "reason", "next_at"]


class PressureSerializer(serializers.Serializer[Pressure]):
    """The pressure on a queue now."""

    site = serializers.CharField(source="queue.site.name")
    queue = serializers.CharField(source="queue.name")
    request = RequestSerializer(
        allow_null=True, help_text="Null before the director has looked at the queue."
    )
    troubles = ContactSerializer(many=True)


class RecordSerializer(serializers.ModelSerializer[PressureRecord]):
    """What a queue was asked for at one time; submitted and removed count since the one before."""

    reasons = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = PressureRecord
        fields = [
            "at", "waiting_jobs", "wanted", "granted", "ceiling", "submitted", "removed", "reasons",
        ]  # fmt: skip
