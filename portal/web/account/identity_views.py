"""Views of the identities on the account page: begin to link another one, unlink one.

Both ask for a proof that it is the person who sits there: the password, or, of an account without
one, a login at a provider in the last ten minutes.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from portal.identity.known_issuers import login_issuers
from portal.middleware.login_throttle import throttled_check
from portal.web.account.openid_views import was_seen_lately
from portal.web.account.page import show_account
from portal.web.shared.pages import page
from wms.core.actors import Actor
from wms.core.errors import Conflict, IssuerAway, NotFound, NotPermitted
from wms.core.identities import find_own_identity, unlink_identities

_TAB = "identities"


@sensitive_post_parameters()
@require_POST
@page
def link_identity(request: HttpRequest) -> HttpResponse:
    """Send the browser to a provider, to log in there as the identity that is to be linked."""
    # With it come clients of HTTP and of OAuth, which no other page needs.
    from portal.identity import redirects

    provider = settings.OIDC_PROVIDERS.get(request.POST.get("provider", ""))
    if provider is None:
        raise NotFound("There is no such provider by which one could link an identity.")
    try:
        _require_proof(request)
        begun = redirects.Begun(_address(), links=request.user.pk, is_fresh=True)
        return redirects.begin(request, provider, begun, now=timezone.now())
    except (NotPermitted, IssuerAway) as error:
        return show_account(request, _TAB, error=error)


@sensitive_post_parameters()
@require_POST
@page
def unlink_identity(request: HttpRequest, identity_id: int) -> HttpResponse:
    """Unlink one of the user's own identities, but the last way to log in."""
    identity, actor = find_own_identity(request.user, identity_id), Actor.person(request.user)
    try:
        _require_proof(request)
        applied = unlink_identities([identity.pk], actor=actor, login_issuers=login_issuers())
    except (NotPermitted, Conflict) as error:
        return show_account(request, _TAB, error=error)
    if not applied.changed:
        raise Conflict(f"{identity} was unlinked before.")
    messages.success(request, f"Unlinked: {identity}.")
    return redirect(_address())


def _address() -> str:
    return f"{reverse('web:account')}?tab={_TAB}"


def _require_proof(request: HttpRequest) -> None:
    """Raise NotPermitted, or TooManyWrongPasswords, unless it is the person who sits there."""
    user = request.user
    if not user.has_usable_password():
        if not was_seen_lately(request):
            raise NotPermitted(
                "No provider has seen you in the last ten minutes: log in once more, below, and "
                "then do it again."
            )
        return
    given = request.POST.get("password", "")
    if not throttled_check(request, user.get_username(), lambda: user.check_password(given)):
        raise NotPermitted("The password is not that of your account.")
