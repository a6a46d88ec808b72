"""Serializers and fields that several resources of the API share.

JSON objects of texts or numbers, needs, options, findings, problems, reasons, events, and the base
of bodies without unknown names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from wms.core.models import EventRecord
from wms.jobs.states import InputCause

_JSON_OBJECT = {"type": "object", "additionalProperties": {}}
_AMOUNTS_BY_NAME = {"type": "object", "additionalProperties": {"type": "number"}}
_TEXTS_BY_NAME = {"type": "object", "additionalProperties": {"type": "string"}}
_NUMBERS_BY_NAME = {"type": "object", "additionalProperties": {"type": "integer"}}
_OPTIONS = {
    "type": "object",
    "additionalProperties": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
}
_NEEDS = {
    "type": "object",
    "properties": {
        "owner": {"type": "string"},
        "owner_group": {"type": "string"},
        "cpu_time_s": {"type": "integer"},
        **{
            name: {"type": "integer"}
            for name in ("cores", "max_cores", "memory_mb", "gpus", "disk_mb")
        },
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
                "limits",
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


class _CheckedObjectField(serializers.JSONField):
    """A JSON object that a caller sends; its values are checked by the service."""

    def to_internal_value(self, data: Any) -> Any:
        """The object. Raises ValidationError for other JSON."""
        value = super().to_internal_value(data)
        if not isinstance(value, dict):
            raise serializers.ValidationError("must be a JSON object")
        return value


@extend_schema_field(_OPTIONS)
class OptionsField(_CheckedObjectField):
    """Options of a run by their names."""


@extend_schema_field(_NUMBERS_BY_NAME)
class NumbersByNameField(_CheckedObjectField):
    """A JSON object of whole numbers."""


@extend_schema_field(_NEEDS)
class NeedsField(serializers.JSONField):
    """Needs of a job."""


class InputsSerializer(serializers.Serializer[Any]):
    """Input data with logical names: where their replicas are, and the sites near all of them."""

    cause = serializers.ChoiceField(
        choices=InputCause.choices,
        help_text="near: they tie it to `sites`; apart, missing: they keep it from all; empty: "
        "from none.",
    )
    told = serializers.CharField(allow_blank=True, help_text="The names, and where they are.")
    sites = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="Null: any."
    )
    tenths = NumbersByNameField(
        help_text="How many tenths of their bytes are near sites, where they may come from afar."
    )


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
    member = serializers.CharField(
        allow_blank=True, help_text="The member of the archive `file` that is at fault."
    )


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


class InstantField(serializers.DateTimeField):
    """A time that is sent: one without a zone could mean any of 24 hours, and is refused."""

    def enforce_timezone(self, value: datetime) -> datetime:
        """The time. Raises ValidationError for one without a zone."""
        if timezone.is_naive(value):
            raise serializers.ValidationError(
                f"has no time zone: write {value.isoformat()}Z for UTC, or +01:00 at its end"
            )
        return super().enforce_timezone(value)


class ReasonSerializer(StrictSerializer):
    """The body of a steering request."""

    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=1000,
        help_text="Recorded with the change; needed for all but a release.",
    )  # fmt: skip


class EventSerializer(serializers.ModelSerializer[EventRecord]):
    """Fields of all events."""

    facts = ObjectField(read_only=True)


EVENT_FIELDS = ["id", "event", "from_state", "to_state", "actor", "reason", "facts", "created_at"]
#: Of what has causes: code decides by them, and never by the words of a reason.
CAUSED_EVENT_FIELDS = [*EVENT_FIELDS, "cause"]
