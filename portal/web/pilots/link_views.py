"""View of the links between storages: a matrix of them, and a line for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.web.shared.pages import page, render_page
from wms.placement.links import Link, links_seen_by

#: Rows and columns of the matrix, and lines of the table below it.
_ENDS = 20
_LINES = 200
#: A link that does as well is well; one that does worse than the other is bad.
_WELL, _BADLY = 0.95, 0.5


@require_safe
@page
def link_list(request: HttpRequest) -> HttpResponse:
    """Links as a matrix, source by destination, and each with its last error."""
    found = links_seen_by(request.user, timezone.now())
    sources = _busiest(found.links, [each.source for each in found.links])
    destinations = _busiest(found.links, [each.destination for each in found.links])
    by_ends = {(each.source, each.destination): each for each in found.links}
    numbers = {(each.source, each.destination): n for n, each in enumerate(found.links, 1)}
    context = {
        "destinations": destinations,
        "rows": [
            (
                source,
                [
                    (link, _tone(link), numbers[source, end], _percent(link)) if link else None
                    for end in destinations
                    for link in [by_ends.get((source, end))]
                ],
            )
            for source in sources
        ],
        "lines": [(each, _tone(each)) for each in found.links[:_LINES]],
        "since": found.since,
        "is_cut": found.is_cut,
        "is_part": len(found.links) > _LINES,
    }
    return render_page(request, "links", context)


def _busiest(links: Sequence[Link], names: Sequence[str]) -> list[str]:
    """The ends with the most transfers, by name."""
    counts: Counter[str] = Counter()
    for link, name in zip(links, names, strict=True):
        counts[name] += link.attempts + link.running + link.waiting
    return sorted(name for name, _ in counts.most_common(_ENDS))


def _tone(link: Link) -> str:
    rate = link.success_rate
    if rate is None:
        return "idle"
    if rate >= _WELL:
        return "good"
    return "warn" if rate >= _BADLY else "bad"


def _percent(link: Link) -> str:
    """Part that succeeded, never rounded up to all of them."""
    rate = link.success_rate
    return "" if rate is None else f"{int(100 * rate)} %"
