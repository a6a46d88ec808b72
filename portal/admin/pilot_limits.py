"""Admin page of pilot limits: overall, per site, group and frontend."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from portal.admin.accounting import OwnLimitsAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.roles import actor_of
from wms.pilots.pressure.pilot_limits import check_limit, delete_limit, save_limit
from wms.pilots.pressure_models import PilotLimit


class PilotLimitForm(CheckedForm):
    """A limit that limits something, and names what its scope allows."""

    check = staticmethod(check_limit)

    class Meta:
        model = PilotLimit
        fields = (
            "scope", "site", "group", "frontend", "max_pilots", "curb_pilots", "max_cores",
            "max_idle_pilots", "curb_idle_pilots",
        )  # fmt: skip
        help_texts = {
            "scope": "Which pilots are counted together.",
            "site": "None: each site that has no limit of its own.",
            "group": "None: each group that has no limit of its own.",
            "frontend": "None: each frontend that has no limit of its own.",
        }

    def clean(self) -> dict[str, Any] | None:
        """Show at its field what the database's constraint would tell without one."""
        cleaned: dict[str, Any] | None = super().clean()
        values = self.cleaned_data
        for name in ("site", "group", "frontend"):
            if values.get(name) and values.get("scope") != name:
                self.add_error(name, f"only a limit of {name}s names one")
        return cleaned


class PilotLimitAdmin(OwnLimitsAdmin):
    """Limits of pilots overall, per site, group and frontend."""

    form = PilotLimitForm
    list_display = ("whose", "max_pilots", "curb_pilots", "max_cores", "max_idle_pilots")
    list_filter = ("scope",)
    list_select_related = ("site", "group", "frontend")

    @admin.display(description="limit on", ordering="scope")
    def whose(self, row: PilotLimit) -> str:
        """Name of the pilots that the limit counts together."""
        return str(row)

    def save_model(self, request: HttpRequest, obj: PilotLimit, form: Any, change: bool) -> None:
        """Store the limit with an audit entry."""
        save_limit(obj, actor=actor_of(request), reason=form.said_reason)

    def delete_model(self, request: HttpRequest, obj: PilotLimit) -> None:
        """Delete the limit with an audit entry."""
        delete_limit(obj, actor=actor_of(request), reason=deletion_reason(request))
