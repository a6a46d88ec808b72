"""Forms of remarks: about a subject, with the step that it makes, and of the shift log alone."""

from __future__ import annotations

import hashlib
from typing import Any

from django import forms
from django.http import HttpRequest

from portal.web.shared.nonces import page_key
from portal.web.shared.stale_forms import seen_by
from wms.actions.arguments import Order
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.idempotency import RequestKey
from wms.core.idempotency_models import MadeKind
from wms.remarks.services import MAX_ACKNOWLEDGED_S
from wms.remarks.states import RemarkEvent


class LogForm(forms.Form):
    """Form of an entry of the shift log. What is wrong with the texts is told by the service."""

    text = forms.CharField(required=False)
    ticket = forms.CharField(required=False)

    def checked(self) -> dict[str, Any]:
        """The values. Raises InvalidInput with the first fault."""
        if not self.is_valid():
            name, faults = next(iter(self.errors.items()))
            raise InvalidInput.of(str(faults[0]), field=name)
        return self.cleaned_data


class RemarkForm(LogForm):
    """Form of a remark; the button that sends it tells the step."""

    event = forms.ChoiceField(choices=RemarkEvent.choices)
    for_min = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ACKNOWLEDGED_S // 60,
        error_messages={"invalid": "Give a whole number of minutes."},
    )
    person = forms.CharField(required=False)

    def order(self, request: HttpRequest) -> tuple[str, Order]:
        """Name of the action, and the order for it. Raises InvalidInput."""
        values = self.checked()
        event, arguments = values["event"], {"ticket": values["ticket"]}
        if event == RemarkEvent.ACKNOWLEDGE:
            minutes = values["for_min"]
            arguments["for_s"] = None if minutes is None else minutes * 60
        if event == RemarkEvent.ASSIGN:
            arguments["person"] = values["person"]
        actor = Actor.person(request.user)
        order = Order(actor, values["text"], arguments, seen_by(request))
        return event.replace("_", "-"), order


def form_key(request: HttpRequest) -> RequestKey | None:
    """Key of what was sent, by which a second click writes nothing; None without a nonce."""
    sent = sorted(
        (name, value)
        for name, value in request.POST.items()
        if name not in {"csrfmiddlewaretoken", "seen"}
    )
    how = f"{request.path}\0{sent}"
    key = page_key(request.POST.get("nonce", ""), [], how)
    if key is None:
        return None
    return RequestKey(MadeKind.ANSWER, key, hashlib.sha256(how.encode()).hexdigest())
