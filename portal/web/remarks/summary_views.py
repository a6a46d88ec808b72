"""Page with the summary of a shift, made to be printed and handed over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.lists.filter_fields import Chosen, MomentsField
from portal.web.shared.pages import page, render_page
from wms.remarks.shifts import shift_between

_USUAL = "8h"
_WAYS = ("8h", "12h", "24h", "7d")
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
#: The trail of a longer time would keep the server busy for one page.
_LONGEST = timedelta(days=31)


class ShiftForm(forms.Form):
    """Form of the time that a summary is about."""

    created = MomentsField(required=False)

    def ends(self, now: datetime) -> tuple[datetime, datetime] | None:
        """First and last moment; None for what cannot be read."""
        if not self.is_valid():
            return None
        chosen: Chosen = self.cleaned_data["created"] or MomentsField().clean([_USUAL])
        start, end = chosen.included[0].ends(now)
        start, end = max(start or _FIRST, _FIRST), end or now
        if end - start > _LONGEST:
            self.add_error("created", f"A summary is of {_LONGEST.days} days at most.")
            return None
        return start, end


@require_safe
@page
def summary(request: HttpRequest) -> HttpResponse:
    """Entries and steering actions of a time; by default of the last eight hours."""
    form = ShiftForm(request.GET)
    ends = form.ends(timezone.now())
    context = {
        "form": form,
        "created": ", ".join(request.GET.getlist("created")) or _USUAL,
        "ways": _WAYS,
        "ends": ends,
        "shift": shift_between(request.user, *ends) if ends else None,
    }
    return render_page(request, "shift_summary", context, status=200 if ends else 400)
