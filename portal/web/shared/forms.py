"""Common forms of pages. They check shape only; the services decide what is allowed."""

from __future__ import annotations

from typing import Any

from django import forms

from wms.core.errors import Finding, InvalidInput
from wms.dags.services.dags import MAX_AVOID_S


class ReasonForm(forms.Form):
    """Why something is done; recorded with the change."""

    reason = forms.CharField(
        max_length=2000,
        required=False,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
    )

    def options(self) -> dict[str, Any]:
        """What the service is asked for. A text that is too long counts as none."""
        return {"reason": self.cleaned_data["reason"] if self.is_valid() else ""}


class RematchForm(ReasonForm):
    """Why and how DAGs leave their sites."""

    lets_finish = forms.BooleanField(required=False)
    avoid_min = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_AVOID_S // 60,
        error_messages={
            "invalid": "Give a whole number of minutes.",
            "min_value": "A time cannot be negative.",
            "max_value": f"At most {MAX_AVOID_S // 60} minutes.",
        },
    )

    def options(self) -> dict[str, Any]:
        """What the service is asked for. Raises InvalidInput for a time that is none."""
        if not self.is_valid() and "avoid_min" in self.errors:
            fault = self.errors["avoid_min"][0]
            raise InvalidInput([Finding(fault, field="Avoid the site")])
        minutes = self.cleaned_data["avoid_min"]
        return {
            **super().options(),
            "lets_finish": self.cleaned_data["lets_finish"],
            "avoid_s": None if minutes is None else minutes * 60,
        }
