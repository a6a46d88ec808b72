"""Endpoints by which command lines log in: by which providers, and a token for their ID token."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import refusals
from portal.api.shapes import StrictSerializer
from portal.config.identity_providers import OidcProvider
from portal.middleware.login_throttle import ip_address_of
from wms.accounting.entering import enter
from wms.core.errors import InvalidInput
from wms.core.login_tokens import LIFETIME, issue_login_token, renew_login_token
from wms.core.models import Scope
from wms.core.tokens import IssuedToken

#: An access token may be longer than an ID token.
_LONGEST = 16_384


class LoginProviderSerializer(serializers.Serializer[Any]):
    """A provider by which command lines log in, by the grant of devices (RFC 8628)."""

    id = serializers.CharField(help_text="Its name in the portal.")
    name = serializers.CharField(help_text="Its name for people.")
    issuer = serializers.CharField(help_text="Its address, below which it describes itself.")
    client_id = serializers.CharField(help_text="Of a client without a secret.")
    scopes = serializers.ListField(child=serializers.CharField(), help_text="To be asked for.")


class LoginProvidersSerializer(serializers.Serializer[Any]):
    """All providers by which command lines log in."""

    providers = LoginProviderSerializer(many=True)


class LoginSerializer(StrictSerializer):
    """Body of a login: what the provider gave."""

    provider = serializers.CharField(max_length=32)
    id_token = serializers.CharField(max_length=_LONGEST)
    access_token = serializers.CharField(
        max_length=_LONGEST, required=False, allow_blank=True, default="",
        help_text="By which the portal asks the provider for groups; empty: the ID token has them.",
    )  # fmt: skip
    renews = serializers.CharField(
        max_length=12, required=False, allow_blank=True, default="",
        help_text="`prefix` of the token of an earlier login that this one renews; empty: none.",
    )  # fmt: skip
    name = serializers.CharField(
        max_length=100, required=False, default="command line", help_text="What it is for."
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices), required=False, allow_null=True,
        default=None, max_length=20, help_text="null: all. One that is renewed keeps its own.",
    )  # fmt: skip


class LoginTokenSerializer(serializers.Serializer[Any]):
    """Token of a login."""

    token = serializers.CharField()
    prefix = serializers.CharField()
    username = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices))
    lifetime_s = serializers.IntegerField(help_text="So long it is good, by anybody's clock.")
    expires_at = serializers.DateTimeField(help_text="Renew it before, by a new ID token.")


class Login(APIView):
    """Login of a command line, by a provider."""

    authentication_classes: tuple[Any, ...] = ()
    permission_classes = (AllowAny,)
    throttle_classes: tuple[Any, ...] = ()

    @extend_schema(
        operation_id="login_providers",
        summary="Providers by which command lines log in",
        responses={200: LoginProvidersSerializer},
        auth=[],
    )
    def get(self, request: Request) -> Response:
        """Providers that have a client for command lines; anybody may ask."""
        told = [
            {
                "id": each.id, "name": each.name, "issuer": each.issuer,
                "client_id": each.device_client_id, "scopes": list(each.device_scopes),
            }
            for each in settings.OIDC_PROVIDERS.values()
            if each.device_client_id
        ]  # fmt: skip
        return Response(LoginProvidersSerializer({"providers": told}).data)

    @extend_schema(
        operation_id="login",
        summary="Log in by an ID token",
        request=LoginSerializer,
        responses={200: LoginTokenSerializer, **refusals(400, 403)},
        auth=[],
    )
    @sensitive_variables()
    def post(self, request: Request) -> Response:
        """The answer has a token that is good for an hour.

        The ID token has to be younger than ten minutes, and for the client that GET names. The
        account is made at the first login, and its rights are set anew at each. After a lost
        answer it may be sent again: the same login gets another token, and the one that is
        renewed is good for a minute more.
        """
        body = LoginSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        issued = _logged_in(request, **body.validated_data)
        told = {
            "token": issued.text, "prefix": issued.row.prefix,
            "username": issued.row.user.get_username(), "scopes": issued.row.scopes,
            "expires_at": issued.row.expires_at, "lifetime_s": int(LIFETIME.total_seconds()),
        }  # fmt: skip
        return Response(LoginTokenSerializer(told).data)


@sensitive_variables()
def _logged_in(
    request: Request, *, provider: str, id_token: str, access_token: str, renews: str, **given: Any
) -> IssuedToken:
    # With it come clients of HTTP and signatures, which few requests need.
    from portal.identity.claims import entrant_of
    from portal.identity.id_tokens import check_recent, id_claims, with_userinfo
    from portal.identity.issuers import issuer_of

    now, found = timezone.now(), _provider(provider)
    claims = id_claims(found, id_token, client_id=found.device_client_id, now=now)
    check_recent(claims, now=now)
    if access_token:
        claims = with_userinfo(found, issuer_of(found.issuer, now=now), claims, access_token)
    person = entrant_of(found, claims)
    # A login that is refused makes no account.
    with transaction.atomic():
        identity = enter(person, now=now, address=ip_address_of(request._request))
        if renews:
            return renew_login_token(identity, renews, id_token=id_token, now=now)
        return issue_login_token(identity, id_token=id_token, now=now, **given)


def _provider(name: str) -> OidcProvider:
    found: OidcProvider | None = settings.OIDC_PROVIDERS.get(name)
    if found is None or not found.device_client_id:
        raise InvalidInput.of(f"there is no provider {name} for this", field="provider")
    return found
