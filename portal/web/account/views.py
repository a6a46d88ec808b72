"""Views of the account page: tabs, tokens, password, default filters, subscriptions, channels.

A new token or webhook secret is shown once; a new password ends the user's other sessions.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from portal.personal.services import set_default_filter
from portal.shared.passwords import OwnPasswordForm
from portal.web.account.forms import ChannelForm, SubscriptionForm
from portal.web.account.page import show_account, token_form
from portal.web.shared.pages import page
from wms.accounting.limited_tokens import issue_limited_token
from wms.core.accounts import change_password
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, PilotageError, TooMany
from wms.core.tokens import find_own_token, revoke_tokens
from wms.notices import services
from wms.notices.packing import Daily
from wms.notices.selectors import find_channel

_TRUTH = {"true": True, "false": False}


@require_safe
@page
def account(request: HttpRequest) -> HttpResponse:
    """Show one tab of the account page."""
    return show_account(request, request.GET.get("tab", "overview"))


def _to(tab: str, fragment: str = "") -> HttpResponse:
    return redirect(f"{reverse('web:account')}?tab={tab}{fragment}")


@require_POST
@page
def add_token(request: HttpRequest) -> HttpResponse:
    """Create a token and show its text once."""
    form = token_form(request.user, request.POST)
    if not form.is_valid():
        return show_account(request, "tokens", status=400, token_form=form)
    issued = issue_limited_token(
        request.user,
        frontend=form.cleaned_data["frontend"],
        name=form.cleaned_data["name"],
        expires_at=form.expires_at(timezone.now()),
        scopes=form.scopes,
        actor=Actor.person(request.user),
    )
    return show_account(request, "tokens", issued=issued)


@require_POST
@page
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke one of the user's own tokens."""
    token = find_own_token(request.user, token_id)
    applied = revoke_tokens([token.pk], actor=Actor.person(request.user))
    if not applied.changed:
        raise Conflict(f"The token {token.prefix} was revoked before.")
    messages.success(request, f"The token {token.prefix} is revoked.")
    return _to("tokens")


@sensitive_post_parameters()
@require_POST
@page
def password(request: HttpRequest) -> HttpResponse:
    """Change the user's own password; the account's other sessions end."""
    if not request.user.has_usable_password():
        raise Conflict("This account has no password here: it logs in through another service.")
    form = OwnPasswordForm(request.user, request.POST, request=request)
    if not form.is_valid():
        return show_account(request, "password", status=400, password_form=form)
    actor = Actor.person(request.user)
    change_password(request.user, form.cleaned_data["new_password1"], actor=actor)
    update_session_auth_hash(request, request.user)
    messages.success(request, "Your password is changed; your other sessions have ended.")
    return _to("password")


@require_POST
@page
def start_filter(request: HttpRequest) -> HttpResponse:
    """Let a list open with a saved filter, or without one."""
    text = request.POST.get("filter", "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound(f"There is no saved filter {text[:20]!r}.")
    actor, name = Actor.person(request.user), request.POST.get("list", "")
    set_default_filter(name, int(text) if text else None, actor=actor)
    messages.success(request, "Stored.")
    return _to("preferences", "#starts")


@require_POST
@page
def subscribe(request: HttpRequest) -> HttpResponse:
    """Subscribe to a rule that is not about one DAG."""
    form = SubscriptionForm(request.POST)
    if not form.is_valid():
        return show_account(request, "notifications", status=400, subscription_form=form)
    try:
        services.subscribe(
            form.cleaned_data["rule"],
            site=form.cleaned_data["site"].strip(),
            actor=Actor.person(request.user),
        )
    except (InvalidInput, NotFound, TooMany) as error:
        form.add_error("site", str(error))
        return show_account(request, "notifications", status=error.status, subscription_form=form)
    messages.success(request, "You are notified about this from now on.")
    return _to("notifications", "#rules")


@require_POST
@page
def unsubscribe(request: HttpRequest, subscription_id: int) -> HttpResponse:
    """End a subscription."""
    services.unsubscribe(subscription_id, actor=Actor.person(request.user))
    messages.success(request, "You are no longer notified about this.")
    return _to("notifications", "#rules")


@require_POST
@page
def add_channel(request: HttpRequest) -> HttpResponse:
    """Add a channel; the secret of a webhook is shown once."""
    form = ChannelForm(request.POST)
    if not form.is_valid():
        return show_account(request, "notifications", status=400, channel_form=form)
    try:
        made = services.add_channel(**form.cleaned_data, actor=Actor.person(request.user))
    except (InvalidInput, Conflict, TooMany) as error:
        findings = getattr(error, "findings", ())
        form.add_error("url", "; ".join(each.message for each in findings) or str(error))
        return show_account(request, "notifications", status=error.status, channel_form=form)
    if made.secret:
        return show_account(request, "notifications", made=made)
    messages.success(request, "You now also get notices by e-mail.")
    return _to("notifications", "#channels")


@require_POST
@page
def change_channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Change, test or remove a channel, depending on the button."""
    actor, row = Actor.person(request.user), find_channel(request.user, channel_id)
    action = request.POST.get("action", "")
    try:
        if action == "renew":
            made = services.renew_secret(row.pk, actor=actor)
            return show_account(request, "notifications", made=made)
        messages.success(request, _changed(request, row.pk, action, actor))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        return show_account(request, "notifications", error=error)
    return _to("notifications", "#channels")


def _daily(given: QueryDict) -> Daily | None:
    """Hour and zone of a daily digest; None if the form has none. Raises InvalidInput."""
    hour = given.get("digest_hour")
    if hour is None:
        return None
    if not (hour.isascii() and hour.isdigit() and len(hour) < 3):
        raise InvalidInput.of("must be from 0 to 23", field="digest_hour")
    return Daily(int(hour), given.get("digest_zone", "UTC"))


def _changed(request: HttpRequest, channel_id: int, action: str, actor: Actor) -> str:
    """Carry out the button of a channel; returns the message for the user."""
    if action == "test":
        services.send_test(channel_id, actor=actor, now=timezone.now())
        return "A test is being sent: the log below shows the result."
    if action == "remove":
        services.remove_channel(channel_id, actor=actor)
        return "The channel is removed."
    enabled_text = request.POST.get("is_enabled")
    if action != "change" or (enabled_text is not None and enabled_text not in _TRUTH):
        raise InvalidInput.of("must be change, test, renew or remove", field="action")
    services.change_channel(
        channel_id,
        pace=request.POST.get("pace"),
        daily=_daily(request.POST),
        is_enabled=None if enabled_text is None else _TRUTH[enabled_text],
        actor=actor,
    )
    return "The channel is changed."
