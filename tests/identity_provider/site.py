"""Site of the identity provider: django-oauth-toolkit with claims as IAM and Keycloak send them.

To the package it adds what those providers do: an ID token for the device grant, its endpoint in
the configuration, and access tokens in the form of the WLCG profile. `control/` is the tests'.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.contrib.auth.models import Group, User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt
from jwcrypto import jwt as signed
from oauth2_provider.models import DeviceGrant
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.utils import jwk_from_pem
from oauth2_provider.views import ConnectDiscoveryInfoView, DeviceAuthorizationView
from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant
from oauthlib.openid import Server
from oauthlib.openid.connect.core.grant_types.base import GrantTypeBase

_TOKEN_S = 600


class Claims(OAuth2Validator):
    """Claims of a person, whatever the scopes: name, address, groups."""

    oidc_claim_scope = None

    def get_additional_claims(self) -> Mapping[str, Any]:
        """Functions of a request, by the names of claims."""
        return {
            "preferred_username": lambda request: request.user.username,
            "given_name": lambda request: request.user.first_name,
            "email": lambda request: request.user.email,
            "email_verified": lambda request: bool(request.user.email),
            "wlcg.groups": lambda request: _groups(request.user),
            "realm_access": lambda request: {"roles": _groups(request.user)},
        }

    def validate_device_code(self, client_id: str, device_code: str, request: Any) -> str:
        """State of a grant that the package's view found agreed to; oauthlib 4 asks for it."""
        grant = DeviceGrant.objects.get(client_id=client_id, device_code=device_code)
        request.user, request.scopes = grant.user, grant.scope.split()
        return str(DeviceCodeGrant.DEVICE_CODE_AUTHORIZED)


def _groups(user: User) -> list[str]:
    return list(user.groups.order_by("name").values_list("name", flat=True))


class _DeviceGrant(DeviceCodeGrant):
    """The grant of devices, with an ID token."""

    def create_token_response(self, request: Any, token_handler: Any) -> Any:
        headers, body, status = super().create_token_response(request, token_handler)
        if status != 200:
            return headers, body, status
        openid = GrantTypeBase()
        openid.request_validator = self.request_validator
        openid.proxy_target = self
        token = openid.add_id_token(json.loads(body), token_handler, request)
        return headers, json.dumps(token), status


class ServerWithDevices(Server):
    """The package's server, with that grant."""

    def __init__(self, request_validator: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(request_validator, *args, **kwargs)
        self._grant_types["urn:ietf:params:oauth:grant-type:device_code"] = _DeviceGrant(
            request_validator
        )


def wlcg_token(request: Any, refresh_token: bool = False) -> str:
    """Access token in the form of the WLCG profile; `audience` and `changes` come in the request.

    `changes` are claims as a test wants them, which no real issuer would let anybody say.
    """
    if refresh_token:
        return uuid.uuid4().hex
    now = int(time.time())
    claims = {
        "iss": oauth2_settings.OIDC_ISS_ENDPOINT, "sub": str(request.user.pk),
        "aud": getattr(request, "audience", None) or "nobody", "iat": now, "nbf": now,
        "exp": now + _TOKEN_S, "jti": uuid.uuid4().hex, "wlcg.ver": "1.0",
        "scope": " ".join(request.scopes),
    }  # fmt: skip
    claims |= json.loads(getattr(request, "changes", None) or "{}")
    claims = {name: value for name, value in claims.items() if value is not None}
    key = jwk_from_pem(oauth2_settings.OIDC_RSA_PRIVATE_KEY)
    token = signed.JWT({"alg": "RS256", "kid": key.thumbprint(), "typ": "JWT"}, claims)
    token.make_signed_token(key)
    return token.serialize()


def new_key() -> str:
    """A private key as text."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


class _Configuration(ConnectDiscoveryInfoView):
    """The document of the package, with the endpoint for devices."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        answer = super().get(request, *args, **kwargs)
        told = json.loads(answer.content)
        told["device_authorization_endpoint"] = f"{told['issuer']}/device-authorization/"
        return JsonResponse(told)


class _Devices(DeviceAuthorizationView):
    """The grant of devices with scopes that are asked for: oauthlib 4 tells of them, too."""

    def create_device_authorization_response(self, request: HttpRequest) -> Any:
        headers, told, status = super().create_device_authorization_response(request)
        if status == 200:
            told.pop("scope", None)
        return headers, told, status


@csrf_exempt
def control(request: HttpRequest) -> HttpResponse:
    """Change a person, or the key that signs."""
    wanted = json.loads(request.body)
    if wanted.get("new_key"):
        oauth2_settings.OIDC_RSA_PRIVATE_KEY = new_key()
        return JsonResponse({})
    user, _ = User.objects.get_or_create(username=wanted["username"])
    user.set_password("a purple staple")
    user.email, user.first_name = wanted.get("email", ""), wanted.get("first_name", "")
    user.save()
    user.groups.set(
        [Group.objects.get_or_create(name=name)[0] for name in wanted.get("groups", ())]
    )
    return JsonResponse({"sub": str(user.pk)})


urlpatterns = [
    path("o/.well-known/openid-configuration", _Configuration.as_view()),
    path("o/device-authorization/", _Devices.as_view()),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    path("login/", LoginView.as_view(template_name="login.html"), name="login"),
    path("control/", control),
]
