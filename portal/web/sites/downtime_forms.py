"""Form of a downtime: start, end, lead time and reason, in the zone that is shown beside them.

The zone is a field of the form: it is that of the user's preferences, and where these say "that of
the browser" a script fills it in; without the script it is UTC. Also the faults of a downtime by
field.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from portal.personal.models import Preferences
from portal.personal.zones import BROWSER, zone_named
from portal.web.shared.forms import ReasonForm
from wms.core.errors import Finding, InvalidInput
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import MAX_LEAD_TIME, DowntimeTerms

_NO_TIME = "Give a time such as 2026-11-20 17:30."
_TYPED = "%Y-%m-%dT%H:%M"


class DowntimeForm(ReasonForm):
    """Form of a downtime: start, end, lead time and reason."""

    zone = forms.CharField(required=False, widget=forms.HiddenInput)
    start = forms.DateTimeField(error_messages={"required": "Give the start.", "invalid": _NO_TIME})
    end = forms.DateTimeField(error_messages={"required": "Give the end.", "invalid": _NO_TIME})
    lead_min = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=int(MAX_LEAD_TIME.total_seconds()) // 60,
        error_messages={
            "invalid": "Give a whole number of minutes.",
            "min_value": "A time cannot be negative.",
            "max_value": f"At most {MAX_LEAD_TIME.days} days, in minutes.",
        },
    )

    def clean(self) -> dict[str, Any]:
        """Read both times in the time zone of the form."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        name = cleaned.get("zone") or "UTC"
        zone = zone_named(name)
        if zone is None:
            self.add_error("zone", f"There is no time zone {name[:60]!r}.")
            return cleaned
        for field in ("start", "end"):
            if field in cleaned:
                self._place(field, zone, name)
        return cleaned

    def _place(self, field: str, zone: ZoneInfo, name: str) -> None:
        typed: datetime = self.cleaned_data[field].replace(tzinfo=None)
        moment = typed.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) != typed:
            self.add_error(field, f"There is no such time in {name}: clocks are put forward.")
        self.cleaned_data[field] = moment

    def terms(self) -> DowntimeTerms:
        """Terms of the downtime. Raises InvalidInput with every fault, by field."""
        if not self.is_valid():
            raise InvalidInput(
                [Finding(text, field=name) for name, texts in self.errors.items() for text in texts]
            )
        return DowntimeTerms(
            start=self.cleaned_data["start"],
            end=self.cleaned_data["end"],
            lead_time_s=60 * (self.cleaned_data["lead_min"] or 0),
            reason=self.cleaned_data["reason"],
        )


def zone_of_form(kept: Preferences) -> str:
    """Time zone in which the user types times, as far as the server knows it."""
    return "UTC" if kept.time_zone in {"", BROWSER} else kept.time_zone


def typed(moment: datetime, zone: str) -> str:
    """A moment in the form's time format."""
    return f"{moment.astimezone(ZoneInfo(zone)):{_TYPED}}"


def new_form(zone: str, now: datetime) -> DowntimeForm:
    """A form for a downtime that begins at the next full hour and lasts two hours."""
    start = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    times = {"start": typed(start, zone), "end": typed(start + timedelta(hours=2), zone)}
    return DowntimeForm(initial={**times, "zone": zone, "lead_min": 0})


def form_of(downtime: Downtime, zone: str) -> DowntimeForm:
    """Form filled with the terms of a downtime."""
    return DowntimeForm(
        initial={
            "start": typed(downtime.start, zone),
            "end": typed(downtime.end, zone),
            "zone": zone,
            "lead_min": downtime.lead_time_s // 60,
            "reason": downtime.reason,
        }
    )


def faults_of(error: Exception | None) -> dict[str, str]:
    """Faults of a downtime, by the form's fields."""
    if not isinstance(error, InvalidInput):
        return {}
    renamed = {"lead_time_s": "lead_min"}
    return {renamed.get(each.field, each.field): each.message for each in error.findings}
