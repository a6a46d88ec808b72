"""Page that imports downtimes from a calendar or GOCDB: a document, its preview, the import."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from portal.web.shared.pages import page, render_page
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.exchange.downtimes.entries import MAX_BYTES, ImportOptions, site_names
from wms.exchange.downtimes.importing import (
    DowntimePlan,
    DowntimePlanChanged,
    import_downtimes,
    preview_downtimes,
    require_importing,
)
from wms.sites.downtimes.services import MAX_LEAD_TIME
from wms.sites.policy import steerable_sites

_MOST_MIN = int(MAX_LEAD_TIME.total_seconds()) // 60


class ImportForm(forms.Form):
    """Document of downtimes, as a file or as it was previewed, with the options of its import."""

    file = forms.FileField(required=False, widget=forms.FileInput)
    text = forms.CharField(required=False, strip=False, max_length=MAX_BYTES)
    source = forms.CharField(max_length=64, error_messages={"required": "Name the source."})
    sites = forms.CharField(required=False, max_length=64 * 1024)
    default_site = forms.CharField(required=False, max_length=64)
    zone = forms.CharField(required=False, max_length=64)
    lead_min = forms.IntegerField(required=False, min_value=0, max_value=_MOST_MIN)
    is_complete = forms.BooleanField(required=False)
    overwrites = forms.BooleanField(required=False)
    token = forms.CharField(required=False, max_length=64)
    reason = forms.CharField(required=False, max_length=2000)

    def clean(self) -> dict[str, Any]:
        """Read the file, which wins over a text. Refuse what is no text or not there."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        file = values.get("file")
        if file is not None:
            try:
                values["text"] = file.read(MAX_BYTES + 1).decode("utf-8-sig")
            except UnicodeDecodeError:
                self.add_error("file", "It is not UTF-8.")
        if not values.get("text") and not self.errors:
            self.add_error("file", "Choose a file.")
        # Browsers send the line ends of Windows: what is previewed is what is stored.
        values["text"] = (values.get("text") or "").replace("\r\n", "\n")
        return values

    def options(self) -> ImportOptions:
        """Options of the import. Raises InvalidInput for a line of names that is none."""
        values = self.cleaned_data
        return ImportOptions(
            source=values["source"].strip(),
            sites=site_names(values["sites"].splitlines()),
            default_site=values["default_site"].strip(),
            zone=values["zone"].strip() or "UTC",
            lead_time_s=60 * (values["lead_min"] or 0),
            is_complete=values["is_complete"],
            overwrites=values["overwrites"],
        )


@require_http_methods(["GET", "HEAD", "POST"])
@page
def import_page(request: HttpRequest) -> HttpResponse:
    """Ask for a document, show what it would do, and do that when it is confirmed."""
    require_importing(Actor.person(request.user))
    if request.method != "POST":
        return _show(request, ImportForm())
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _show(request, form, status=400)
    try:
        with heavy_place(request.user):
            return _carried_out(request, form)
    except NotPermitted:
        raise
    except DowntimePlanChanged as error:
        return _show(request, form, plan=error.plan, error=error, status=error.status)
    except PilotageError as error:
        return _show(request, form, error=error, status=error.status)


def _carried_out(request: HttpRequest, form: ImportForm) -> HttpResponse:
    actor, now = Actor.person(request.user), timezone.now()
    content, token = form.cleaned_data["text"].encode(), form.cleaned_data["token"]
    if not token:
        plan = preview_downtimes(content, form.options(), actor=actor, now=now)
        return _show(request, form, plan=plan)
    reason = form.cleaned_data["reason"]
    plan = import_downtimes(
        content, form.options(), token=token, actor=actor, reason=reason, now=now
    )
    told = ", ".join(f"{count} {outcome}" for outcome, count in plan.counts.items())
    messages.success(request, f"The downtimes are imported: {told}.")
    return redirect("web:downtimes")


def _show(
    request: HttpRequest,
    form: ImportForm,
    *,
    plan: DowntimePlan | None = None,
    error: PilotageError | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "plan": plan,
        "text": form.cleaned_data.get("text", "") if form.is_bound and form.is_valid() else "",
        "sites": steerable_sites(request.user).order_by("name").values_list("name", flat=True),
        "error": error,
        "findings": error.findings if isinstance(error, InvalidInput) else (),
    }
    return render_page(request, "downtime_import", context, status=status)
