"""Serializer of entries of the audit trail."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.shapes import ObjectField
from wms.core.models import AuditEntry


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """Action of a person on an object, with its reason."""

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
