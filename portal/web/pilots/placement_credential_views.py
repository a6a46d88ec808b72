"""Views of one's credentials for transfers: listed without what is secret, set, forgotten."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from portal.web.shared.pages import page
from wms.core.actors import Actor
from wms.core.errors import NotFound, NotPermitted, PilotageError
from wms.core.models import Role
from wms.core.policy import has_role, require_role
from wms.placement.credentials import (
    NewCredential,
    credential_schemes,
    delete_credential,
    own_credentials,
    set_credential,
)


class CredentialForm(forms.Form):
    """Form of a credential for an endpoint; the service checks what it says."""

    endpoint = forms.CharField(max_length=300)
    user = forms.CharField(max_length=255, required=False)
    password = forms.CharField(max_length=8192, required=False, strip=False)
    token = forms.CharField(max_length=8192, required=False)
    key = forms.CharField(max_length=65536, required=False)


@sensitive_post_parameters("password", "token", "key")
@require_http_methods(["GET", "HEAD", "POST"])
@page
@sensitive_variables("form", "given")
def credentials(request: HttpRequest) -> HttpResponse:
    """The user's credentials, with the form that sets one; what is secret is never shown."""
    if request.method != "POST":
        return _page(request)
    actor = Actor.person(request.user)
    require_role(actor, Role.USER, "keep credentials for placements")
    form = CredentialForm(request.POST)
    if not form.is_valid():
        faults = [f"{name}: {fault}" for name, each in form.errors.items() for fault in each]
        return _page(request, faults=faults, status=400)
    given = form.cleaned_data
    try:
        stored, _ = set_credential(NewCredential(**given), owner=request.user, actor=actor)
    except NotPermitted:
        raise
    except PilotageError as error:
        return _page(request, faults=[str(error)], status=error.status)
    messages.success(request, f"The credential for {stored} is stored.")
    return redirect("web:placement-credentials")


def _page(
    request: HttpRequest, *, faults: list[str] | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "credentials": list(own_credentials(request.user)),
        "schemes": ", ".join(credential_schemes()),
        "faults": faults or [],
        # Only what is no secret is shown again.
        "endpoint": request.POST.get("endpoint", "")[:300],
        "account": request.POST.get("user", "")[:255],
        "may_keep": has_role(request.user, Role.USER),
    }
    return render(request, "web/placement_credentials.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def forget(request: HttpRequest, placement_credential_id: int) -> HttpResponse:
    """Forget one of the user's credentials; a GET leads to all of them."""
    if request.method == "POST":
        actor = Actor.person(request.user)
        delete_credential(placement_credential_id, owner=request.user, actor=actor)
        messages.success(request, "The credential is forgotten.")
    elif not own_credentials(request.user).filter(pk=placement_credential_id).exists():
        raise NotFound(f"You have no credential {placement_credential_id} for placements.")
    return redirect("web:placement-credentials")
