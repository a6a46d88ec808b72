"""Pages of campaigns: their list with the sums of all labels, and one with its forecast."""

from __future__ import annotations

from datetime import UTC, datetime

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from portal.web.shared.stale_forms import seen_by
from wms.campaigns import services
from wms.campaigns.label_sums import MAX_LABELS_TOLD, label_sums
from wms.campaigns.selectors import campaigns, find_campaign, in_words
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotFound, NotPermitted, PilotageError
from wms.core.labels import campaigns_among, label_of_campaign

#: Sums over many DAGs take their time, and change slowly.
_REFRESH_S = 30
#: Words of the answers whether a deadline will be met, each with the tone of its badge.
VERDICTS = {
    "met": ("good", "It ended in time."),
    "missed": ("bad", "It has passed."),
    "likely": ("good", "It will be met, as things go."),
    "open": ("warn", "It may be met: it is within the range of the forecast."),
    "unlikely": ("bad", "It will not be met, as things go."),
    "unknown": ("quiet", "Nothing can be said yet, without a forecast."),
}


class DeadlineForm(ReasonForm):
    """Form of a campaign's deadline, in UTC; an empty one takes it away."""

    deadline = forms.DateTimeField(
        required=False, error_messages={"invalid": "Give a time such as 2026-11-20 17:30."}
    )

    def moment(self) -> datetime | None:
        """The deadline, or None. Raises InvalidInput."""
        if not self.is_valid() and "deadline" in self.errors:
            raise InvalidInput.of(str(self.errors["deadline"][0]), field="deadline")
        typed: datetime | None = self.cleaned_data.get("deadline")
        return None if typed is None else typed.replace(tzinfo=UTC)


@require_safe
@page
def campaign_list(request: HttpRequest) -> HttpResponse:
    """Campaigns, and the sums of all other labels."""
    sums = label_sums(request.user)
    context = {
        "campaigns": campaigns(request.user, sums),
        "labels": [each for each in sums if not campaigns_among([each.label])],
        "is_cut": len(sums) >= MAX_LABELS_TOLD,
        "refresh_s": _REFRESH_S,
    }
    return render_page(request, "campaigns", context)


@require_safe
@page
def campaign_page(request: HttpRequest, campaign: str) -> HttpResponse:
    """One campaign: progress, forecast, deadline, cost, causes of failures."""
    return _page(request, campaign)


@require_POST
@page
def set_deadline(request: HttpRequest, campaign: str) -> HttpResponse:
    """Set the deadline, or take it away."""
    form = DeadlineForm(request.POST)
    try:
        reason = form.options()["reason"]
        services.set_deadline(
            campaign,
            deadline=form.moment(),
            actor=Actor.person(request.user),
            reason=reason,
            seen=seen_by(request),
        )
    except (NotFound, NotPermitted):
        raise
    except PilotageError as error:
        return _page(request, campaign, form=form, error=error)
    messages.success(request, f"The deadline of {campaign} is changed.")
    return redirect("web:campaign", campaign=campaign)


def _page(
    request: HttpRequest,
    name: str,
    *,
    form: DeadlineForm | None = None,
    error: PilotageError | None = None,
) -> HttpResponse:
    now = timezone.now()
    found = find_campaign(request.user, name, now=now)
    tone, words = VERDICTS.get(found.verdict.value, ("", ""))
    context = {
        "campaign": found,
        "label": label_of_campaign(name),
        "verdict_tone": tone,
        "verdict_words": words,
        "seen": in_words(found.deadline),
        "may_set": services.may_set_deadline(request.user, name),
        "form": form,
        "error": error,
        "refresh_s": _REFRESH_S,
    }
    return render_page(request, "campaign", context, status=error.status if error else 200)
