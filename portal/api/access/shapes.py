"""Serializers of who is calling, and of the portal's version."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from wms.core.models import ApiToken, Role, Scope


class OwnTokenSerializer(serializers.ModelSerializer[ApiToken]):
    """The token of a request."""

    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices))
    frontend = serializers.CharField(
        source="limit", allow_null=True,
        help_text="The frontend that it is limited to; null: it is not.",
    )  # fmt: skip

    class Meta:
        model = ApiToken
        fields = ["prefix", "name", "scopes", "frontend", "created_at", "expires_at"]


class MeSerializer(serializers.Serializer[Any]):
    """Account and token of the request."""

    username = serializers.CharField()
    full_name = serializers.CharField(allow_blank=True)
    email = serializers.CharField(allow_blank=True)
    role = serializers.ChoiceField(Role.choices)
    permissions = serializers.ListField(
        child=serializers.ChoiceField(Role.choices),
        help_text="All roles that it includes: what needs one of them is permitted.",
    )
    groups = serializers.ListField(
        child=serializers.CharField(), help_text="Accounting groups of which one is a member."
    )
    administered_sites = serializers.ListField(
        child=serializers.CharField(), help_text="Sites that name one as their administrator."
    )
    token = OwnTokenSerializer(
        allow_null=True, help_text="null: a session, a token of another issuer or of a payload."
    )


class VersionSerializer(serializers.Serializer[Any]):
    """Version of the portal and of its API."""

    product = serializers.CharField()
    version = serializers.CharField()
    api = serializers.CharField(help_text="Version of the API, as it stands in addresses.")
    portal = serializers.CharField(help_text="Which portal it is, as `/health/live` says.")
