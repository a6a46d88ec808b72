"""Sites and queues in the administration."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.admin.roles import CheckedForm, RoleAdmin, actor_of
from wms.sites.ads import check_site
from wms.sites.models import Queue, Site
from wms.sites.services import check_queue, save_queue, save_site

_EXPRESSION = forms.Textarea(attrs={"rows": 3, "cols": 100, "spellcheck": "false"})
_LINES = forms.Textarea(attrs={"rows": 8, "cols": 100, "spellcheck": "false"})


class SiteForm(CheckedForm):
    """A site whose expressions parse."""

    check = staticmethod(check_site)

    class Meta:
        model = Site
        fields = (
            "name", "is_enabled", "max_matches", "requirements", "rank", "environment",
            "attributes",
        )  # fmt: skip
        widgets = {
            "requirements": _EXPRESSION,
            "rank": _EXPRESSION,
            "environment": _LINES,
            "attributes": _LINES,
        }


class SiteAdmin(RoleAdmin):
    """Sites with their expressions, and the ad that they were last published under."""

    form = SiteForm
    list_display = ("name", "is_enabled", "max_matches")
    list_filter = ("is_enabled",)
    search_fields = ("name",)
    readonly_fields = ("published_ad",)

    @admin.display(description="published ad")
    def published_ad(self, site: Site) -> SafeString | str:
        """Show what the negotiator sees, and since when."""
        try:
            ad = site.ad
        except ObjectDoesNotExist:
            return "not published yet"
        return format_html("<p>{}</p><pre>{}</pre>", ad.published_at, ad.text)

    def save_model(self, request: HttpRequest, obj: Site, form: Any, change: bool) -> None:
        """Store the site with an event and an audit entry."""
        save_site(obj, actor=actor_of(request))


class QueueForm(CheckedForm):
    """A queue whose element understands its settings."""

    check = staticmethod(check_queue)

    class Meta:
        model = Queue
        fields = (
            "site", "name", "element", "settings", "is_enabled", "max_pilots", "max_queued_pilots",
            "cores", "memory_mb", "wall_time_s", "platform", "tags",
        )  # fmt: skip


class QueueAdmin(RoleAdmin):
    """Queues, to which pilots are sent."""

    form = QueueForm
    list_display = ("name", "site", "element", "is_enabled", "max_pilots", "max_queued_pilots")
    list_filter = ("is_enabled", "element")
    list_select_related = ("site",)
    search_fields = ("name", "site__name")

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        """Store the queue with an event and an audit entry."""
        save_queue(obj, actor=actor_of(request))
