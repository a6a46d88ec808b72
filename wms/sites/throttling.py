"""Throttles of sites that fail DAGs or pilots: an allowance of new matches per ten minutes.

Adjusted after each period, and used up by matches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from matching.negotiation.failure_throttle import Outcomes, next_allowance
from wms.core.actors import Actor
from wms.sites.models import Site, SiteEvent, SiteThrottle

#: Periods begin at multiples of this since 1970.
PERIOD = timedelta(seconds=600)
_ACTOR = Actor.system("negotiator")


def period_start(now: datetime) -> datetime:
    """The start of the period that `now` is in."""
    period_s = int(PERIOD.total_seconds())
    return datetime.fromtimestamp(int(now.timestamp()) // period_s * period_s, tz=UTC)


def throttle_due(now: datetime) -> datetime | None:
    """The start of the period that has ended, when a site has not been judged for it yet."""
    end = period_start(now)
    judged = Q(throttle__judged_until__gte=end)
    return end - PERIOD if Site.objects.exclude(judged).exists() else None


@transaction.atomic
def adjust_throttles(outcomes: Mapping[int, Outcomes], now: datetime) -> None:
    """Set every site's allowance by what ended there in the last whole period.

    Sites that were judged for it already are left alone, so that it may be repeated. A change of an
    allowance is an event of the site. Periods in which nobody looked are not judged.
    """
    end = period_start(now)
    # Locked, so that two at once judge a site once.
    locked = SiteThrottle.objects.select_for_update().order_by("site_id")
    old = {row.site_id: row for row in locked}
    rows, events = [], []
    for site in Site.objects.order_by("pk"):
        throttle = old.get(site.pk) or SiteThrottle(site=site, judged_until=end - PERIOD)
        if throttle.judged_until >= end:
            continue
        ended = outcomes.get(site.pk, Outcomes())
        allowance = next_allowance(
            throttle.allowance,
            ended,
            threshold=site.failure_threshold,
            matched=throttle.matched,
        )
        if allowance != throttle.allowance:
            events.append(_event(site, throttle.allowance, allowance, ended))
        throttle.allowance, throttle.matched, throttle.judged_until = allowance, 0.0, end
        throttle.failures, throttle.successes = ended.failures, ended.successes
        rows.append(throttle)
    _store(rows)
    SiteEvent.objects.bulk_create(events, batch_size=1000)


def _event(
    site: Site, before: float | None, allowance: float | None, outcomes: Outcomes
) -> SiteEvent:
    facts: dict[str, Any] = {
        "allowance": [before, allowance],
        "failures": outcomes.failures,
        "successes": outcomes.successes,
        "threshold": site.failure_threshold,
    }
    bound = "as many as there are" if allowance is None else f"at most {allowance:.3g}"
    reason = (
        f"{outcomes.failures} failures and {outcomes.successes} successes in ten minutes; new "
        f"matches in the next ones: {bound}"
    )
    return SiteEvent(site=site, event="throttle", actor=_ACTOR.name, reason=reason, facts=facts)


def _store(rows: list[SiteThrottle]) -> None:
    SiteThrottle.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["site"],
        update_fields=["allowance", "matched", "judged_until", "failures", "successes"],
        batch_size=1000,
    )


@transaction.atomic
def note_matches(counts: Mapping[int, float]) -> None:
    """Count the new matches of sites against their allowances of this period."""
    # Few different numbers for many sites: one statement for each number.
    sites_by_count: dict[float, list[int]] = defaultdict(list)
    for site_id, count in counts.items():
        sites_by_count[count].append(site_id)
    for count, site_ids in sorted(sites_by_count.items()):
        throttles = SiteThrottle.objects.filter(site_id__in=site_ids)
        throttles.update(matched=F("matched") + count)
