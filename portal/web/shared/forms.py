"""Base form of pages that change something: the reason. Services decide what is allowed."""

from __future__ import annotations

from typing import Any

from django import forms


class ReasonForm(forms.Form):
    """Form with the reason of a change, which is recorded with it."""

    reason = forms.CharField(
        max_length=2000,
        required=False,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
    )

    def options(self) -> dict[str, Any]:
        """Options for the service. A text that is too long counts as none."""
        return {"reason": self.cleaned_data["reason"] if self.is_valid() else ""}
