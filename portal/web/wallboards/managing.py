"""Page of the addresses of wallboards: make one, which is shown once, and revoke it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from portal.shared.address_tokens import PARAMETER
from portal.web.shared.pages import page, render_page
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, PilotageError
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.tokens import IssuedToken
from wms.core.wallboards import (
    MAX_DAYS,
    MAX_NAME,
    make_wallboard,
    revoke_wallboards,
    visible_wallboards,
)

_SHOWN = 200
_USUAL_DAYS = 180


class WallboardForm(forms.Form):
    """Form of a new address."""

    name = forms.CharField(max_length=MAX_NAME)
    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS, initial=_USUAL_DAYS)
    reason = forms.CharField(max_length=2000)

    def made(self, request: HttpRequest) -> IssuedToken:
        """The new address. Raises InvalidInput with the first fault."""
        if not self.is_valid():
            name, faults = next(iter(self.errors.items()))
            raise InvalidInput.of(str(faults[0]), field=name)
        return make_wallboard(
            **self.cleaned_data, actor=Actor.person(request.user), now=timezone.now()
        )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def wallboards(request: HttpRequest) -> HttpResponse:
    """Addresses of wallboards; a POST makes one, and its answer shows it."""
    require_role(Actor.person(request.user), Role.SHIFTER, "manage wallboards")
    if request.method != "POST":
        return _show(request, form=WallboardForm())
    form = WallboardForm(request.POST)
    try:
        issued = form.made(request)
    except NotPermitted:
        raise
    except PilotageError as error:
        return _show(request, form=form, error=error)
    at = f"{reverse('web:wallboard')}?{urlencode({PARAMETER: issued.text})}"
    made = {"name": issued.row.name, "address": request.build_absolute_uri(at)}
    return _show(request, form=WallboardForm(), made=made)


def _show(
    request: HttpRequest, *, form: WallboardForm, error: PilotageError | None = None, **more: Any
) -> HttpResponse:
    rows = list(visible_wallboards(request.user)[: _SHOWN + 1])
    context = {
        "rows": rows[:_SHOWN],
        "is_cut": len(rows) > _SHOWN,
        "form": form,
        "days": form["days"].value() or _USUAL_DAYS,
        "max_days": MAX_DAYS,
        "error": error,
        "now": timezone.now(),
        **more,
    }
    return render_page(request, "wallboards", context, status=error.status if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke one address; a GET, as after a new login, leads to the list."""
    actor = Actor.person(request.user)
    require_role(actor, Role.SHIFTER, "manage wallboards")
    row = visible_wallboards(request.user).filter(pk=token_id).first()
    if row is None:
        raise NotFound(f"There is no wallboard {token_id}.")
    if request.method == "POST":
        reason = request.POST.get("reason", "")
        if not revoke_wallboards([row.pk], actor=actor, reason=reason).changed:
            raise Conflict(f"The wallboard {row.name} was revoked before.")
        messages.success(request, f"The address of the wallboard {row.name} is revoked.")
    return redirect("web:wallboards")
