"""Serializer of credentials of frontends; the secret is written, and never read."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.frontends.fields import FrontendField, QueueField
from portal.api.limits.shapes import SiteField
from portal.api.shapes import InstantField, StrictSerializer
from wms.accounting.models import Frontend
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.secrets import MOST_BYTES
from wms.sites.models import Site


class CredentialSerializer(StrictSerializer, serializers.ModelSerializer[Credential]):
    """Credential of a frontend at a queue, or at all queues of a site that take its kind."""

    name = serializers.CharField(max_length=64)
    frontend = FrontendField(
        "name", queryset=Frontend.objects.all(), allow_null=True, required=False, default=None,
        help_text="Whose pilots are submitted with it; null: those of the default frontend.",
    )  # fmt: skip
    queue = QueueField(allow_null=True, required=False, default=None, help_text="As SITE/QUEUE.")
    site = SiteField(
        "name", queryset=Site.objects.all(), allow_null=True, required=False, default=None
    )
    account = serializers.CharField(max_length=64, allow_blank=True, required=False, default="")
    directory = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    is_enabled = serializers.BooleanField(required=False, default=True)
    valid_until = InstantField(allow_null=True, required=False, default=None)
    secret = serializers.CharField(
        source="new_secret",
        write_only=True,
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        max_length=MOST_BYTES,
        default="",
        help_text="Never shown again; empty: the one that is stored stays.",
    )

    class Meta:
        model = Credential
        fields = [
            "id", "name", "frontend", "queue", "site", "kind", "account", "directory",
            "is_enabled", "valid_until", "secret", "fingerprint", "subject", "expires_at",
            "created_at", "replaced_at", "last_used_at",
        ]  # fmt: skip
        read_only_fields = [
            "fingerprint", "subject", "expires_at", "created_at", "replaced_at", "last_used_at",
        ]  # fmt: skip
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []
