"""Login by OpenID Connect: the way to the provider and back, by django-allauth.

Of that package the protocol is used: state, PKCE, the exchange of the code. Accounts are Pilotage's
(`wms.accounting.entering`); what the provider says of itself comes from `portal.identity.issuers`,
and its signed token is checked here, with the nonce that was sent along.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.base import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from portal.config.identity_providers import OidcProvider
from portal.identity.id_tokens import id_claims, with_userinfo
from portal.identity.issuers import Issuer, issuer_of
from wms.core.errors import IssuerAway, LoginFailed, LoginRefused, TokenUnreadable

#: Codes of errors are of a few words (RFC 6749, section 5.2): what else comes is not shown.
_LONGEST_CODE = 40


@dataclass(frozen=True, slots=True)
class Begun:
    """Purpose with which a way to a provider was begun, kept in the session until it ends.

    `links` is the account to which the identity is to be linked; None: it is to log in. With
    `is_fresh` the provider was asked to see the person anew, whatever session it has.
    """

    next_path: str = ""
    links: int | None = None
    is_fresh: bool = False


class ProviderErrors(DefaultSocialAccountAdapter):
    """Errors on the way, raised as the portal's own."""

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> None:
        """Raise what became of the login."""
        name = provider.name
        if error == AuthError.CANCELLED:
            raise LoginRefused(f"{name} says that access was denied, by you or by its rules.")
        if isinstance(exception, requests.RequestException):
            raise IssuerAway(f"{name} does not answer: try again in a moment.") from exception
        if exception is not None:
            raise LoginFailed(f"{name} did not take the portal's request.") from exception
        if "state_id" in (extra_context or {}):
            raise LoginFailed(
                "This login was not begun in this browser, is older than ten minutes, or was "
                "finished already."
            )
        raise LoginFailed(f"{name} ended the login: {_code(request.GET.get('error', ''))}.")


class PilotageProvider(OpenIDConnectProvider):
    """Provider as the package knows it, made of the portal's settings."""

    pkce_enabled_default = True

    def get_oauth2_adapter(self, request: HttpRequest) -> ProviderCalls:
        """Adapter that speaks to the provider."""
        return ProviderCalls(request, self.app.provider_id)


class ProviderCalls(OpenIDConnectOAuth2Adapter):
    """Calls of one provider in one login."""

    now: datetime
    #: Called with the claims; its answer ends the login.
    finish: Callable[[Mapping[str, Any]], HttpResponse]
    state: Mapping[str, Any]

    @property
    def settings(self) -> OidcProvider:
        """The provider as the settings describe it."""
        found: OidcProvider = settings.OIDC_PROVIDERS[self.provider_id]
        return found

    @property
    def issuer(self) -> Issuer:
        """The provider as it describes itself. Raises IssuerAway."""
        return issuer_of(self.settings.issuer, now=self.now)

    def get_provider(self) -> PilotageProvider:
        """The package's view of it; nothing of it is in the database."""
        own = self.settings
        app = SocialApp(
            provider=PilotageProvider.id,
            provider_id=own.id,
            name=own.name,
            client_id=own.client_id,
            secret=own.client_secret,
            settings={"server_url": own.issuer, "scope": list(own.scopes)},
        )
        return PilotageProvider(self.request, app=app)

    @property
    def openid_config(self) -> dict[str, Any]:
        """Document that the provider publishes."""
        return self.issuer.configuration

    def parse_token(self, data: Mapping[str, Any]) -> SocialToken:
        """The access token, by which userinfo is asked for now; nothing else of it is needed."""
        return SocialToken(token=str(data["access_token"]))

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Address to come back to: the portal's public one, whatever a proxy passes on."""
        return callback_address(self.provider_id)

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> Any:
        """Check what came, and let the person in: the login ends here."""
        text = kwargs["response"].get("id_token")
        if not isinstance(text, str):
            raise TokenUnreadable(f"{self.settings.name} sent no ID token.")
        claims = id_claims(
            self.settings, text, client_id=self.settings.client_id, now=self.now,
            nonce=self.state.get("nonce", ""),
        )  # fmt: skip
        told = with_userinfo(self.settings, self.issuer, claims, token.token)
        raise ImmediateHttpResponse(self.finish(told))


class _Callback(OAuth2CallbackView):
    """End of the way back, which needs what was kept at its beginning."""

    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        state, answer = super()._get_state(request, provider)
        self.adapter.state = state or {}
        return state, answer


def begin(
    request: HttpRequest, provider: OidcProvider, begun: Begun, *, now: datetime
) -> HttpResponse:
    """Redirection to the provider. Raises IssuerAway."""
    calls = ProviderCalls(request, provider.id)
    calls.now = now
    calls.issuer.endpoint("authorization_endpoint")
    nonce = secrets.token_urlsafe(24)
    package = calls.get_provider()
    # The package makes calls of its own, which are to be of the same moment.
    package.get_oauth2_adapter = lambda _: calls
    asked = {"nonce": nonce, **({"prompt": "login"} if begun.is_fresh else {})}
    process = AuthProcess.LOGIN if begun.links is None else AuthProcess.CONNECT
    answer: HttpResponse = package.redirect(
        request, process, begun.next_path, nonce=nonce, auth_params=asked,
        links=begun.links, is_fresh=begun.is_fresh,
    )  # fmt: skip
    return answer


def come_back(
    request: HttpRequest,
    provider: OidcProvider,
    *,
    now: datetime,
    finish: Callable[[Mapping[str, Any], Begun], HttpResponse],
) -> HttpResponse:
    """Answer to who comes back from the provider; `finish` gets claims, and how it was begun.

    Raises NotAuthenticated, LoginRefused, LoginFailed or IssuerAway.
    """
    calls = ProviderCalls(request, provider.id)
    calls.now = now
    calls.finish = lambda claims: finish(claims, _begun(calls.state))
    answer: HttpResponse = _Callback.adapter_view(calls)(request)
    return answer


def _begun(state: Mapping[str, Any]) -> Begun:
    return Begun(state.get("next") or "", state.get("links"), bool(state.get("is_fresh")))


def callback_address(provider_id: str) -> str:
    """Address that a provider is told to send people back to."""
    path = reverse("web:openid-callback", kwargs={"provider": provider_id})
    return f"{settings.PUBLIC_URL}{path}"


def _code(text: str) -> str:
    is_code = 0 < len(text) <= _LONGEST_CODE and text.replace("_", "").isalnum() and text.isascii()
    return text if is_code else "without a reason that can be shown"
