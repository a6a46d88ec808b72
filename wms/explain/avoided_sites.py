"""Sites that a DAG avoids after a rematch, in its answer: until when, and why it left them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from matching.negotiation.decision import Request
from matching.negotiation.unmatched_reasons import reasons_for_leaving
from wms.sites.models import Site

#: Limit of avoided sites that the summary names.
_MAX_AVOIDED = 5


@dataclass(frozen=True, slots=True)
class AvoidedSite:
    """Site that a DAG avoids until a time after a rematch, and the reason of the rematch."""

    site: str
    until: datetime
    reason: str


def avoided_sites(request: Request, now: datetime) -> list[AvoidedSite]:
    """Sites that the request avoids, ordered by the end of the avoidance."""
    sites = Site.objects.filter(pk__in=request.avoided).values_list("pk", "name")
    avoided = [
        AvoidedSite(name, request.avoided[site_id], request.left_because.get(site_id, ""))
        for site_id, name in sites
        if request.avoided[site_id] > now
    ]
    return sorted(avoided, key=lambda avoided_site: (avoided_site.until, avoided_site.site))


def avoidance_sentences(avoided: list[AvoidedSite]) -> list[str]:
    """Sentences about why the DAG left these sites, and until when it avoids them."""
    sentences = [reasons_for_leaving({each.site: each.reason for each in avoided})]
    sentences += [
        f"It avoids {each.site} until {each.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC."
        for each in avoided[:_MAX_AVOIDED]
    ]
    rest = len(avoided) - _MAX_AVOIDED
    if rest > 0:
        sentences.append(f"It avoids {rest} more site{'s' if rest > 1 else ''}.")
    return [sentence for sentence in sentences if sentence]
