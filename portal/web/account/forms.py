"""The forms of one's own account. What is allowed is decided by the services."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms

from wms.notices.addresses import MAX_URL
from wms.notices.models import Channel, Rule


class TokenForm(forms.Form):
    """A new token: what it is for, and how long it is valid."""

    LIFETIMES = (("7", "a week"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"))

    name = forms.CharField(max_length=100)
    days = forms.ChoiceField(choices=[*LIFETIMES, ("", "no end")], required=False, initial="90")

    def expires_at(self, now: datetime) -> datetime | None:
        """When it ends to be valid; None for never."""
        days = self.cleaned_data["days"]
        return now + timedelta(days=int(days)) if days else None


class SubscriptionForm(forms.Form):
    """A rule, and the site that it is about; none for all of them."""

    rule = forms.CharField(max_length=16, initial=Rule.SITE)
    site = forms.CharField(max_length=64, required=False)


class ChannelForm(forms.Form):
    """A way out of the portal."""

    kind = forms.ChoiceField(choices=Channel.Kind.choices)
    url = forms.CharField(max_length=MAX_URL, required=False)
    pace = forms.ChoiceField(choices=Channel.Pace.choices, initial=Channel.Pace.NOW)
