"""Serializers of remarks, and of an entry of the shift log that is sent."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from portal.api.shapes import StrictSerializer
from wms.remarks.models import MAX_TEXT, MAX_TICKET, Remark

_ACKNOWLEDGED = {
    "id": 7,
    "created_at": "2026-11-20T17:30:00Z",
    "author": "sam",
    "event": "acknowledge",
    "subject_kind": "dag",
    "subject_id": 12,
    "subject_name": "merge.dag",
    "text": "Its input is broken; the owner has been asked.",
    "ticket": "https://tickets.example.org/123",
    "until": "2026-11-20T18:30:00Z",
    "person": None,
}


@extend_schema_serializer(
    examples=[OpenApiExample("Acknowledged", value=_ACKNOWLEDGED, response_only=True)]
)
class RemarkSerializer(serializers.ModelSerializer[Remark]):
    """Entry of the shift log: a remark about a DAG, a site or a failure group, or about none."""

    author = serializers.CharField(source="author.username")
    person = serializers.CharField(
        source="person.username", allow_null=True, default=None,
        help_text="Whom the subject was assigned to.",
    )  # fmt: skip

    class Meta:
        model = Remark
        fields = [
            "id", "created_at", "author", "event", "subject_kind", "subject_id", "subject_name",
            "text", "ticket", "until", "person",
        ]  # fmt: skip
        read_only_fields = fields


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "Handover",
            value={"text": "UW drains for its upgrade; see the ticket.",
                   "ticket": "https://tickets.example.org/124"},
            request_only=True,
        )
    ]
)  # fmt: skip
class LogEntrySerializer(StrictSerializer):
    """An entry of the shift log that is about no subject."""

    text = serializers.CharField(max_length=MAX_TEXT)
    ticket: Any = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=MAX_TICKET,
        help_text="Address of a ticket: http or https.",
    )  # fmt: skip
