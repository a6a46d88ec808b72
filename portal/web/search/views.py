"""Page of the search over everything."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from portal.web.search.finding import MAX_CHARACTERS, find_everywhere
from portal.web.shared.pages import page


@require_safe
@page
def search(request: HttpRequest) -> HttpResponse:
    """Hits by kind; a single one is gone to at once."""
    text = request.GET.get("q", "").strip()[:MAX_CHARACTERS]
    found = find_everywhere(request.user, text)
    hits = [hit for kind in found for hit in kind.hits]
    if len(hits) == 1 and hits[0].state:
        return redirect(hits[0].address)
    return render(request, "web/search.html", {"q": text, "found": found})
