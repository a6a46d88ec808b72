"""Admin page of node checks: scripts that pilots run before the first job, or again and again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from portal.admin.forms import CheckedForm
from portal.admin.roles import RoleAdmin, actor_of
from wms.core.models import Role
from wms.pilots.models import NodeCheck
from wms.pilots.program.checks import check_node_check, save_node_check, skipped_publications

_SKIPPED_SHOWN = 10


class NodeCheckForm(CheckedForm):
    """A script that names its interpreter."""

    check = staticmethod(check_node_check)

    class Meta:
        model = NodeCheck
        fields = (
            "name", "site", "group", "position", "script", "settings", "attributes", "variables",
            "time_limit_s", "period_s", "is_enabled",
        )  # fmt: skip
        help_texts = {
            "name": "What it is called in reports of pilots. It cannot be changed later.",
            "is_enabled": "A check that is off is not run.",
        }
        widgets = {
            "script": forms.Textarea(attrs={"rows": 20, "cols": 100, "spellcheck": "false"}),
        }


class NodeCheckAdmin(RoleAdmin):
    """Checks that pilots run on their worker nodes: for administrators only."""

    role = Role.ADMIN
    form = NodeCheckForm
    list_display = ("name", "site", "group", "position", "time_limit_s", "period_s", "is_enabled")
    list_filter = ("is_enabled", "site")
    list_select_related = ("site", "group")
    search_fields = ("name",)
    readonly_fields = ("skipped",)

    @admin.display(description="Not published of late")
    def skipped(self, obj: NodeCheck) -> str:
        """Reasons why some of what it said was not published, with the pilots."""
        if not obj.pk:
            return ""
        line = '<a href="{}">{}</a> at {}: {}'
        shown = skipped_publications(obj)[:_SKIPPED_SHOWN]
        parts = (
            (
                reverse("web:pilot", args=[each.pilot_id]),
                each.pilot_id,
                each.pilot.queue,
                each.skipped,
            )
            for each in shown
        )
        return format_html_join(mark_safe("<br>"), line, parts)

    def save_model(self, request: HttpRequest, obj: NodeCheck, form: Any, change: bool) -> None:
        """Store the check with an audit entry, which keeps what it was before."""
        save_node_check(obj, actor=actor_of(request), reason=form.said_reason)
