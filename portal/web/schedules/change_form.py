"""Form of a schedule's terms, of which those that were changed are sent on."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

from django import forms

from portal.web.shared.forms import ReasonForm
from portal.web.shared.stale_forms import version_of
from wms.core.errors import Finding, InvalidInput
from wms.schedules.cron import MAX_TEXT
from wms.schedules.services import MAX_GRACE_S, MAX_KEPT_RUNS, ScheduleTerms

_TEXT = {"class": "form-control", "autocomplete": "off"}
_NUMBER = {**_TEXT, "inputmode": "numeric"}


def _text(label: str, most: int, help_text: str = "") -> forms.CharField:
    return forms.CharField(
        label=label, max_length=most, help_text=help_text, required=False,
        widget=forms.TextInput(attrs=_TEXT),
    )  # fmt: skip


def _whole(label: str, least: int, most: int, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, min_value=least, max_value=most, help_text=help_text, required=False,
        widget=forms.TextInput(attrs=_NUMBER),
    )  # fmt: skip


class ChangeForm(ReasonForm):
    """Terms of a schedule as they are; a field that is left empty changes nothing."""

    name = _text("Name", 128)
    cron = _text(
        "Times", MAX_TEXT, "Minute, hour, day of the month, month, day of the week: 0 6 * * mon"
    )
    time_zone = _text("Time zone", 64, "Such as Europe/Zurich")
    allows_overlap = forms.ChoiceField(
        label="While the DAG before has not ended",
        choices=[("false", "it is not submitted"), ("true", "it is submitted as well")],
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    grace_s = _whole("Seconds late at most", 60, MAX_GRACE_S, "Later than that, a time is missed")
    kept_runs = _whole("Times kept", 1, MAX_KEPT_RUNS, "DAGs stay")

    def __init__(self, *args: Any, now: ScheduleTerms, **kwargs: Any) -> None:
        shown = {each.name: getattr(now, each.name) for each in fields(now)}
        shown["allows_overlap"] = "true" if now.allows_overlap else "false"
        super().__init__(*args, initial=shown, **kwargs)
        self.now = now

    @property
    def version(self) -> str:
        """Version of the terms that the form shows, against stale forms."""
        return version_of(astuple(self.now))

    def changes(self) -> dict[str, Any]:
        """Terms that were filled in, for the service. Raises InvalidInput with every fault."""
        if not self.is_valid():
            raise InvalidInput(
                [
                    Finding(message, field=str(self.fields[name].label or name))
                    for name, faults in self.errors.items()
                    for message in faults
                ]
            )
        given = {
            name: value for name, value in self.cleaned_data.items() if value not in (None, "")
        }
        if "allows_overlap" in given:
            given["allows_overlap"] = given["allows_overlap"] == "true"
        return {"reason": "", **given}

    def values(self) -> list[forms.BoundField]:
        """Fields except the reason."""
        return [self[name] for name in self.fields if name != "reason"]
