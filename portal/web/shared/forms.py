"""Common forms of pages. They check shape only; the services decide what is allowed."""

from __future__ import annotations

from typing import Any

from django import forms


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
