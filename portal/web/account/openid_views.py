"""Pages of the login: by password, and by OpenID Connect to a provider and back.

By the same way a person who is logged in links another identity to the account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET

from portal.config.identity_providers import OidcProvider
from portal.middleware.error_pages import StatusExplanation, error_page
from portal.middleware.login_throttle import ip_address_of
from wms.accounting.entering import enter
from wms.core.errors import IssuerAway, LoginFailed, PilotageError
from wms.core.identities import link_own_identity

log = structlog.get_logger(__name__)
_BACKEND = "portal.personal.backends.WithPreferences"
#: Of a session: the provider by which it began.
_CAME_BY = "openid"
#: Of a session: when a provider last saw the person, in seconds since 1970.
_SEEN_AT = "openid_seen_at"
_RECENT_S = 600
_NOT_IN = StatusExplanation(
    "You are not logged in",
    "The provider and the portal did not agree about who you are.",
    "Begin once more on the login page. If it happens again, give the operators the id below.",
)
_AS_BEFORE = StatusExplanation(
    "Your account is as it was",
    "The provider and the portal did not agree about the identity. Nothing was linked, and you are "
    "logged in as before.",
    "Begin once more on the page of your account, at Identities.",
)
_AWAY = StatusExplanation(
    "The identity provider is away",
    "The portal cannot reach the provider that you want to log in by.",
    "Try again in a moment. Who has a password here can log in by it meanwhile.",
)


class Login(LoginView):
    """Page to log in: by the password of an account here, or by a provider."""

    template_name = "web/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Values of the page: also the providers, and the one where a session goes on."""
        providers = settings.OIDC_PROVIDERS
        left = providers.get(self.request.GET.get("left", ""))
        return super().get_context_data(providers=list(providers.values()), left=left, **kwargs)


class Logout(LogoutView):
    """End of the session here; whoever came by a provider is told that it goes on there."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """End the session, and lead to the login page."""
        left = request.session.get(_CAME_BY, "")
        answer: HttpResponse = super().post(request, *args, **kwargs)
        if left not in settings.OIDC_PROVIDERS:
            return answer
        return redirect(f"{reverse(settings.LOGOUT_REDIRECT_URL)}?{urlencode({'left': left})}")


def _told(
    view: Callable[[HttpRequest, OidcProvider], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Have a view get its provider, and what it raises told on a page."""

    @wraps(view)
    @never_cache
    @require_GET
    @sensitive_variables()
    def answer(request: HttpRequest, provider: str) -> HttpResponse:
        found = settings.OIDC_PROVIDERS.get(provider)
        if found is None:
            raise Http404
        try:
            return view(request, found)
        except PilotageError as error:
            log.info("openid_login_refused", provider=provider, code=error.code, why=str(error))
            trouble = _AS_BEFORE if request.user.is_authenticated else _NOT_IN
            trouble = _AWAY if isinstance(error, IssuerAway) else trouble
            status = HTTPStatus(error.status)
            return error_page(request, status, trouble=trouble, detail=str(error))

    return answer


@_told
def begin(request: HttpRequest, provider: OidcProvider) -> HttpResponse:
    """Send the browser to the provider; nothing but the state of this login is kept.

    With `fresh=1` the provider is to see the person anew.
    """
    # With it come clients of HTTP and of OAuth, which no other page needs.
    from portal.identity import redirects

    next_path = _own_path(request, request.GET.get("next", ""))
    begun = redirects.Begun(next_path, is_fresh=request.GET.get("fresh") == "1")
    return redirects.begin(request, provider, begun, now=timezone.now())


@_told
def come_back(request: HttpRequest, provider: OidcProvider) -> HttpResponse:
    """Login of who comes back from the provider, in a session with a new key; or a link."""
    from portal.identity import redirects
    from portal.identity.claims import entrant_of

    now = timezone.now()

    def finish(claims: Mapping[str, Any], begun: redirects.Begun) -> HttpResponse:
        person, address = entrant_of(provider, claims), ip_address_of(request)
        if begun.links is not None:
            _require_same(request, begun.links)
            link_own_identity(begun.links, person.issuer, person.subject, now=now, address=address)
            messages.success(request, f"Linked: {person.subject} at {provider.name}.")
        else:
            identity = enter(person, now=now, address=address)
            login(request, identity.user, backend=_BACKEND)
            request.session[_CAME_BY] = provider.id
            log.info("openid_login", provider=provider.id, user=identity.user.username)
        request.session[_SEEN_AT] = _seen_at(claims, begun.is_fresh, now.timestamp())
        return redirect(_own_path(request, begun.next_path) or settings.LOGIN_REDIRECT_URL)

    return redirects.come_back(request, provider, now=now, finish=finish)


def _require_same(request: HttpRequest, user_id: int) -> None:
    """Raise LoginFailed unless the session is still that of the account which began to link."""
    if not request.user.is_authenticated or request.user.pk != user_id:
        raise LoginFailed("Another account, or none, is logged in by now: nothing was linked.")


def _seen_at(claims: Mapping[str, Any], is_fresh: bool, now_s: float) -> float:
    """When the provider saw the person; 0 if it does not say, and was not asked to do it now."""
    told = claims.get("auth_time")
    if isinstance(told, int | float) and not isinstance(told, bool):
        return min(float(told), now_s)
    return now_s if is_fresh else 0.0


def was_seen_lately(request: HttpRequest) -> bool:
    """Whether a provider has seen the person of this session in the last ten minutes."""
    seen_at = request.session.get(_SEEN_AT, 0.0)
    return bool(timezone.now().timestamp() - seen_at < _RECENT_S)


@_told
def leave(request: HttpRequest, provider: OidcProvider) -> HttpResponse:
    """Send the browser to the provider, to end its session there, and back to the login page."""
    from portal.identity.issuers import issuer_of

    issuer = issuer_of(provider.issuer, now=timezone.now())
    back = f"{settings.PUBLIC_URL}{reverse(settings.LOGOUT_REDIRECT_URL)}"
    asked = urlencode({"client_id": provider.client_id, "post_logout_redirect_uri": back})
    return redirect(f"{issuer.endpoint('end_session_endpoint')}?{asked}")


def _own_path(request: HttpRequest, path: str) -> str:
    """The path, if it is of this portal; empty otherwise."""
    is_own = url_has_allowed_host_and_scheme(
        path, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return path if is_own else ""
