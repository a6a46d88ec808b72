"""Admin pages of sites (YAML exchange, ads, whether they take DAGs), queues, and downtimes.

Also links to the explain page, on which a site is tested.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from portal.admin.forms import CheckedForm, date_and_time
from portal.admin.roles import OwnSitesAdmin, actor_of
from portal.admin.site_exchange import export_sites, import_sites
from portal.web.templatetags.pilotage import state
from wms.core.errors import Conflict, PilotageError
from wms.sites.ads import check_site, current_ad
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import cancel_downtimes, check_downtime, save_downtime
from wms.sites.models import Queue, Site
from wms.sites.queue_validation import check_queue
from wms.sites.services import save_queue, save_site
from wms.sites.standing import standing_of

_EXPRESSION = forms.Textarea(attrs={"rows": 3, "cols": 100, "spellcheck": "false"})
_LINES = forms.Textarea(attrs={"rows": 8, "cols": 100, "spellcheck": "false"})


def _moment(at: datetime) -> str:
    return date_format(timezone.localtime(at), "DATETIME_FORMAT")


def test_links(site: Site) -> list[tuple[str, str]]:
    """Links to the explain page, with the site filled in."""
    query = urlencode({"site": site.name})
    return [("Test against what waits", f"{reverse('web:explain')}?{query}")]


class SiteForm(CheckedForm):
    """A site whose expressions parse."""

    check = staticmethod(check_site)

    class Meta:
        model = Site
        fields = (
            "name", "is_enabled", "max_matches", "matches_unit", "group_size", "failure_threshold",
            "requirements", "rank", "environment", "attributes", "administrators",
        )  # fmt: skip
        widgets = {
            "requirements": _EXPRESSION,
            "rank": _EXPRESSION,
            "environment": _LINES,
            "attributes": _LINES,
        }
        help_texts = {
            "name": "What DAGs and jobs call it. It cannot be changed later.",
            "attributes": "Further attributes of the ad, one Name = expression a line.",
        }


class SiteAdmin(OwnSitesAdmin):
    """Sites with their expressions, how they stand, and the ad that was last published."""

    site_field = "pk"
    may_be_added = False
    operators_fields = ("name", "administrators")
    filter_horizontal = ("administrators",)
    change_form_template = "admin/sites/testable_change_form.html"
    change_list_template = "admin/sites/site/change_list.html"

    form = SiteForm
    list_display = ("name", "is_enabled", "shown_state", "max_matches", "matches_unit")
    list_filter = ("is_enabled", "state", "matches_unit")
    search_fields = ("name",)
    readonly_fields = ("standing", "failures", "advertised", "effective_ad", "published_ad")

    def all_rows(self, request: HttpRequest) -> QuerySet[Site]:
        """Sites with all that the list shows of them."""
        return super().all_rows(request).select_related("ad", "advertisement", "throttle")

    def get_urls(self) -> list[Any]:
        """URL patterns with those of the YAML exchange."""
        guarded = self.admin_site.admin_view
        return [
            path("export/", guarded(self.export_view), name="sites_site_export"),
            path("import/", guarded(self.import_view), name="sites_site_import"),
            *super().get_urls(),
        ]

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Send the user's sites as YAML."""
        return export_sites(request)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Read sites from YAML, after a preview."""
        return import_sites(self, request)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kw: Any) -> Any:
        """Lead to the page on which the site is tested against what waits."""
        site = kw.get("obj")
        if site is not None:
            context["test_links"] = test_links(site)
        return super().render_change_form(request, context, *args, **kw)

    @admin.display(description="state", ordering="state")
    def shown_state(self, site: Site) -> SafeString:
        """Tell the state as all pages do."""
        return state(site.state, "site")

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
            f"{throttle.judged_until:%Y-%m-%d %H:%M} UTC{left}"
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
            _moment(advertisement.expires_at),
            advertisement.attributes,
        )

    @admin.display(description="effective ad")
    def effective_ad(self, site: Site) -> SafeString | str:
        """Show what configuration and advertisement make now, and where each attribute is from."""
        if site.pk is None:
            return "-"
        # What was typed into a form that is refused is not in force.
        stored = Site.objects.select_related("ad", "advertisement").get(pk=site.pk)
        try:
            attributes = current_ad(stored)
        except Conflict as error:
            return str(error)
        rows = sorted(attributes.items(), key=lambda line: line[0].lower())
        lines = format_html_join(
            "",
            "<tr><td>{}</td><td><code>{}</code></td><td>{}</td></tr>",
            ((name, each.expression, each.source) for name, each in rows),
        )
        return format_html(
            '<table class="plain"><thead><tr><th scope="col">Attribute</th>'
            '<th scope="col">Expression</th><th scope="col">From</th></tr></thead>'
            "<tbody>{}</tbody></table>",
            lines,
        )

    @admin.display(description="published ad")
    def published_ad(self, site: Site) -> SafeString | str:
        """Show what the negotiator sees, and since when."""
        ad = getattr(site, "ad", None)
        if ad is None:
            return "not published yet"
        return format_html("<p>{}</p><pre>{}</pre>", _moment(ad.published_at), ad.text)

    def save_model(self, request: HttpRequest, obj: Site, form: Any, change: bool) -> None:
        """Store the site with an event and an audit entry."""
        save_site(
            obj,
            actor=actor_of(request),
            reason=form.said_reason,
            administrators=form.cleaned_data.get("administrators"),
            is_proven=False,
        )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: the administrators were stored with the site."""


class QueueForm(CheckedForm):
    """A queue whose element understands its settings."""

    check = staticmethod(check_queue)

    class Meta:
        model = Queue
        fields = (
            "site", "name", "element", "settings", "is_enabled", "max_pilots", "max_queued_pilots",
            "cores", "memory_mb", "gpus", "wall_time_s", "cpu_power", "platform", "tags",
            "required_tags", "setup", "submit_pool", "is_private", "owner", "owner_group", "fence",
            "network", "payload_accounts", "payload_limits", "shared_folders", "http_proxy",
            "checks", "hold_after_failure_s", "attenuation", "max_idle_pilots", "curb_idle_pilots",
            "max_held_pilots", "max_submits", "batch_size", "max_removals", "removal_margin",
            "removal_wait_s", "queued_lifetime_s",
        )  # fmt: skip
        labels = {"gpus": "GPUs"}
        help_texts = {
            "site": "Where its pilots run.",
            "name": "What it is called at its site. It cannot be changed later.",
            "element": "What kind of batch system takes its pilots.",
            "is_enabled": "A queue that is off gets no pilot.",
            "platform": "What jobs that name a platform must name; empty: only those that do not.",
        }

    def clean(self) -> dict[str, Any] | None:
        """Show at its field what the database's constraint would tell without one."""
        cleaned: dict[str, Any] | None = super().clean()
        values = self.cleaned_data
        if values.get("owner_group") and "owner" in values and not values["owner"]:
            self.add_error("owner", "a private queue needs an owner")
        return cleaned


class QueueAdmin(OwnSitesAdmin):
    """Queues, to which pilots are sent."""

    may_be_added = False
    operators_fields = (
        "site", "name", "element", "settings", "is_private", "owner", "owner_group", "fence",
        "network", "shared_folders", "payload_accounts",
    )  # fmt: skip
    change_form_template = "admin/sites/testable_change_form.html"

    form = QueueForm
    list_display = ("name", "site", "element", "is_enabled", "max_pilots", "max_queued_pilots")
    list_filter = ("is_enabled", "element")
    list_select_related = ("site",)
    search_fields = ("name", "site__name")

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kw: Any) -> Any:
        """Lead to the page on which the queue's site is tested against what waits."""
        queue = kw.get("obj")
        if queue is not None:
            context["test_links"] = test_links(queue.site)
            context["test_connection"] = reverse(
                "web:connect-queue", args=[queue.site.name, queue.name]
            )
        return super().render_change_form(request, context, *args, **kw)

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        """Store the queue with an event and an audit entry."""
        save_queue(obj, actor=actor_of(request), reason=form.said_reason)


def _check_downtime(downtime: Downtime) -> None:
    check_downtime(downtime, now=timezone.now())


class DowntimeForm(CheckedForm):
    """A downtime that ends after its start, and in the future."""

    check = staticmethod(_check_downtime)
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        help_text="It is shown with the site.",
    )

    class Meta:
        model = Downtime
        fields = ("site", "start", "end", "lead_time_s", "reason")
        help_texts = {
            "site": "It cannot be changed later.",
            "end": "The site takes work again, unless something else is against it.",
        }
        field_classes = {
            "start": forms.SplitDateTimeField,
            "end": forms.SplitDateTimeField,
        }
        widgets = {"start": date_and_time("Start"), "end": date_and_time("End")}

    def clean(self) -> dict[str, Any] | None:
        """Show at its field what the database's constraint would tell without one."""
        cleaned: dict[str, Any] | None = super().clean()
        start, end = self.cleaned_data.get("start"), self.cleaned_data.get("end")
        if start and end and end <= start:
            self.add_error("end", "must be after the start")
        return cleaned


class DowntimeAdmin(OwnSitesAdmin):
    """Downtimes, the latest first: entered, changed until they are over, cancelled."""

    form = DowntimeForm
    list_display = ("site", "start", "end", "lead_time_s", "reason", "author", "cancelled_by")
    list_filter = (("site", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("site",)
    ordering = ("-start", "-pk")
    readonly_fields = ("author", "created_at", "cancelled_at", "cancelled_by")
    actions = ("cancel",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Downtime | None = None
    ) -> tuple[str, ...]:
        """A downtime stays with its site."""
        fields = super().get_readonly_fields(request, obj)
        return fields if obj is None else ("site", *fields)

    def save_model(self, request: HttpRequest, obj: Downtime, form: Any, change: bool) -> None:
        """Store the downtime with an event and an audit entry."""
        save_downtime(obj, actor=actor_of(request), now=timezone.now())

    @admin.action(description="Cancel the chosen downtimes")
    def cancel(self, request: HttpRequest, downtimes: QuerySet[Downtime]) -> None:
        """Cancel the chosen downtimes."""
        ids = list(downtimes.values_list("pk", flat=True))
        try:
            cancel_downtimes(ids, actor=actor_of(request), now=timezone.now())
        except PilotageError as error:
            messages.error(request, f"None was cancelled. {error}")
        else:
            messages.success(request, f"Cancelled: {len(ids)}.")
