"""Forms of the account page: new token, subscription, channel (e-mail or webhook)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms

from wms.notices.models import Channel, Rule
from wms.notices.webhook_addresses import MAX_URL


class TokenForm(forms.Form):
    """Form of a new token: its purpose, its validity, and the frontend that it is limited to."""

    LIFETIMES = (("7", "a week"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"))

    POWERS = (
        ("", "everything that you may"),
        ("read", "read"),
        ("read submit", "read and submit"),
        ("read submit control", "read, submit and steer"),
        ("read site", "read, and act for sites"),
    )

    name = forms.CharField(max_length=100)
    powers = forms.ChoiceField(choices=POWERS, required=False, initial="")
    frontend = forms.ChoiceField(required=False, initial="")
    days = forms.ChoiceField(choices=[*LIFETIMES, ("", "no expiry")], required=False, initial="90")

    def __init__(self, *args: Any, frontends: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = [(name, name) for name in frontends]
        self.fields["frontend"].choices = [("", "all that you may see"), *named]

    @property
    def scopes(self) -> list[str] | None:
        """Scopes of the token; None for all."""
        return self.cleaned_data["powers"].split() or None

    def expires_at(self, now: datetime) -> datetime | None:
        """End of the token's validity; None for never."""
        days = self.cleaned_data["days"]
        return now + timedelta(days=int(days)) if days else None


class SubscriptionForm(forms.Form):
    """Form of a subscription: a rule and the site it is limited to; no site means all."""

    rule = forms.CharField(max_length=16, initial=Rule.SITE)
    site = forms.CharField(max_length=64, required=False)


class ChannelForm(forms.Form):
    """Form of a new channel: e-mail or webhook, and its pace."""

    kind = forms.ChoiceField(choices=Channel.Kind.choices)
    url = forms.CharField(max_length=MAX_URL, required=False)
    pace = forms.ChoiceField(choices=Channel.Pace.choices, initial=Channel.Pace.NOW)
