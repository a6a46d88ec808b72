"""Sites, queues and downtimes in the administration."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.admin.roles import CheckedForm, RoleAdmin, actor_of
from wms.core.errors import PilotageError
from wms.sites.ads import check_site
from wms.sites.downtimes import cancel_downtimes, check_downtime, save_downtime
from wms.sites.models import Downtime, Queue, Site
from wms.sites.services import check_queue, save_queue, save_site
from wms.sites.standing import standing_of

_EXPRESSION = forms.Textarea(attrs={"rows": 3, "cols": 100, "spellcheck": "false"})
_LINES = forms.Textarea(attrs={"rows": 8, "cols": 100, "spellcheck": "false"})


class SiteForm(CheckedForm):
    """A site whose expressions parse."""

    check = staticmethod(check_site)

    class Meta:
        model = Site
        fields = (
            "name", "is_enabled", "max_matches", "matches_unit", "group_size", "failure_threshold",
            "requirements", "rank", "environment", "attributes",
        )  # fmt: skip
        widgets = {
            "requirements": _EXPRESSION,
            "rank": _EXPRESSION,
            "environment": _LINES,
            "attributes": _LINES,
        }


class SiteAdmin(RoleAdmin):
    """Sites with their expressions, how they stand, and the ad that was last published."""

    form = SiteForm
    list_display = ("name", "is_enabled", "state", "max_matches", "matches_unit")
    list_filter = ("is_enabled", "state", "matches_unit")
    search_fields = ("name",)
    readonly_fields = ("standing", "failures", "advertised", "published_ad")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Site]:
        """With all that is shown of a site."""
        sites: QuerySet[Site] = super().get_queryset(request)
        return sites.select_related("ad", "advertisement", "throttle")

    @admin.display(description="takes DAGs now")
    def standing(self, site: Site) -> str:
        """Tell whether the site takes new DAGs, and if not, why."""
        if site.pk is None:
            return "-"
        standing = standing_of(site, timezone.now())
        return f"no: {standing.reason}" if standing.kind else "yes"

    @admin.display(description="failures in ten minutes")
    def failures(self, site: Site) -> str:
        """Tell what ended at the site lately, and what that leaves it."""
        throttle = getattr(site, "throttle", None)
        if throttle is None:
            return "not judged yet"
        left = "" if throttle.allowance is None else f"; new matches: {throttle.allowance:g}"
        return (
            f"{throttle.failures} failed, {throttle.successes} ended well until "
            f"{throttle.judged_until:%Y-%m-%d %H:%M}{left}"
        )

    @admin.display(description="advertised")
    def advertised(self, site: Site) -> SafeString | str:
        """Show what the site says of itself, and how long that holds."""
        advertisement = getattr(site, "advertisement", None)
        if advertisement is None or advertisement.invalidated_at is not None:
            return "nothing"
        return format_html(
            "<p>number {} by {}, until {}</p><pre>{}</pre>",
            advertisement.sequence,
            advertisement.advertised_by,
            advertisement.expires_at,
            advertisement.attributes,
        )

    @admin.display(description="published ad")
    def published_ad(self, site: Site) -> SafeString | str:
        """Show what the negotiator sees, and since when."""
        ad = getattr(site, "ad", None)
        if ad is None:
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
            "cores", "memory_mb", "gpus", "wall_time_s", "platform", "tags", "required_tags",
            "setup", "submit_pool", "owner", "owner_group", "fence", "payload_limits",
            "shared_folders", "http_proxy", "checks", "hold_after_failure_s", "attenuation",
            "max_idle_pilots", "curb_idle_pilots", "max_held_pilots", "max_submits", "batch_size",
            "max_removals", "removal_margin", "removal_wait_s", "queued_lifetime_s",
        )  # fmt: skip
        labels = {"gpus": "GPUs"}

    def clean(self) -> dict[str, Any] | None:
        """Show at its field what the database's constraint would tell without one."""
        cleaned: dict[str, Any] | None = super().clean()
        values = self.cleaned_data
        if values.get("owner_group") and "owner" in values and not values["owner"]:
            self.add_error("owner", "a private queue needs an owner")
        return cleaned


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


def _check_downtime(downtime: Downtime) -> None:
    check_downtime(downtime, now=timezone.now())


class DowntimeForm(CheckedForm):
    """A downtime that ends after its start, and in the future."""

    check = staticmethod(_check_downtime)

    class Meta:
        model = Downtime
        fields = ("site", "start", "end", "lead_time_s", "reason")
        field_classes = {
            "start": forms.SplitDateTimeField,
            "end": forms.SplitDateTimeField,
        }

    def clean(self) -> dict[str, Any] | None:
        """Show at its field what the database's constraint would tell without one."""
        cleaned: dict[str, Any] | None = super().clean()
        start, end = self.cleaned_data.get("start"), self.cleaned_data.get("end")
        if start and end and end <= start:
            self.add_error("end", "must be after the start")
        return cleaned


class DowntimeAdmin(RoleAdmin):
    """Downtimes, the latest first: entered, changed until they are over, cancelled."""

    form = DowntimeForm
    list_display = ("site", "start", "end", "lead_time_s", "reason", "author", "cancelled_by")
    list_filter = ("site",)
    list_select_related = ("site",)
    ordering = ("-start", "-pk")
    readonly_fields = ("author", "created_at", "cancelled_at", "cancelled_by")
    actions = ("cancel",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Downtime | None = None
    ) -> tuple[str, ...]:
        """A downtime stays with its site."""
        return self.readonly_fields if obj is None else ("site", *self.readonly_fields)

    def save_model(self, request: HttpRequest, obj: Downtime, form: Any, change: bool) -> None:
        """Store the downtime with an event and an audit entry."""
        save_downtime(obj, actor=actor_of(request), now=timezone.now())

    @admin.action(description="Cancel the chosen downtimes")
    def cancel(self, request: HttpRequest, downtimes: QuerySet[Downtime]) -> None:
        """Take them out of the calendar."""
        ids = list(downtimes.values_list("pk", flat=True))
        try:
            cancel_downtimes(ids, actor=actor_of(request), now=timezone.now())
        except PilotageError as error:
            messages.error(request, f"None was cancelled. {error}")
        else:
            messages.success(request, f"Cancelled: {len(ids)}.")
