"""Page on which placement requests are submitted or only checked."""

from __future__ import annotations

import io
from collections.abc import Sequence

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.middleware.uploads import keeps_names, uploads
from portal.web.shared.findings import SHOWN, quoted
from portal.web.shared.nonces import fresh_nonce, page_key
from portal.web.shared.pages import page
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.core.models import Role
from wms.core.policy import has_role, require_role
from wms.dags.submission.checking import read_text
from wms.placement.services import (
    MAX_TEXT_BYTES,
    SubmittedRequests,
    check_requests,
    submit_requests,
)


class PlacementsForm(forms.Form):
    """Form of requests; the service checks what they say."""

    requests = forms.CharField(
        label="Requests",
        required=False,
        strip=False,
        max_length=MAX_TEXT_BYTES,
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 14, "spellcheck": "false"}
        ),
    )
    group = forms.CharField(
        label="Group",
        required=False,
        max_length=64,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


@keeps_names
@require_http_methods(["GET", "HEAD", "POST"])
@page
def submit_placements(request: HttpRequest) -> HttpResponse:
    """Form with the faults of what was sent; requests without faults are stored."""
    if request.method != "POST":
        return _answer(request, PlacementsForm())
    require_role(Actor.person(request.user), Role.USER, "submit placement requests")
    form = PlacementsForm(request.POST)
    text = ""
    try:
        text = _text(request, form)
        with heavy_place(request.user):
            if request.POST.get("do") == "check":
                return _answer(request, form, text, count=len(check_requests(text)))
            done = submit_requests(
                text,
                actor=Actor.person(request.user),
                owner=request.user,
                group=form.cleaned_data["group"].strip(),
                idempotency_key=page_key(request.POST.get("nonce", ""), [], text),
            )
    except NotPermitted:
        raise
    except InvalidInput as error:
        return _answer(request, form, text, findings=error.findings, status=error.status)
    except PilotageError as error:
        return _answer(request, form, text, findings=[Finding(str(error))], status=error.status)
    return _to_requests(request, done)


def _text(request: HttpRequest, form: PlacementsForm) -> str:
    """The text that was typed, or that of the file. Raises InvalidInput."""
    if not form.is_valid():
        raise InvalidInput(
            [
                Finding(str(fault), field=name)
                for name, faults in form.errors.items()
                for fault in faults
            ]
        )
    sent = [upload for upload in uploads(request, "file") if upload.name]
    if not sent:
        return str(form.cleaned_data["requests"])
    text, faults = read_text(sent[0].content, file=sent[0].name, limit_bytes=MAX_TEXT_BYTES)
    if faults:
        raise InvalidInput(faults)
    return text


def _to_requests(request: HttpRequest, done: SubmittedRequests) -> HttpResponse:
    if len(done.ids) == 1:
        messages.success(request, f"Placement request {done.ids[0]} is submitted.")
        return redirect("web:placement", request_id=done.ids[0])
    messages.success(request, f"{len(done.ids):,} placement requests are submitted.")
    return redirect("web:placements")


def _answer(
    request: HttpRequest,
    form: PlacementsForm,
    text: str = "",
    *,
    findings: Sequence[Finding] = (),
    count: int | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "nonce": fresh_nonce(),
        "is_answered": bool(findings) or count is not None,
        "count": count,
        # The text has no name: its lines are those of the field.
        "findings": quoted(findings, {"": io.BytesIO(text.encode())}),
        "findings_total": len(findings),
        "shown": SHOWN,
        "may_submit": has_role(request.user, Role.USER),
    }
    return render(request, "web/submit_placements.html", context, status=status)
