"""Standing of sites: whether they take new DAGs now, and if not, the kind and the reason.

Also how many new matches its failures leave a site in this period, the status of a site in one
word, and all queues with whether pilots may be sent to each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue, Site, SiteAd
from wms.sites.selectors import downtimes_from, enabled_queues
from wms.sites.states import SiteState
from wms.sites.throttling import PERIOD

#: A downtime is near from so long before its start.
_NEAR = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a site takes new DAGs.

    `kind` is empty for a site that does; else one of disabled, no queue, commissioning,
    banned, draining, downtime, expired, throttled. `reason` goes on after "the site is ...".
    `allowance` is how many new matches its failures still leave it in this period; None means no
    bound. `near_downtime` is the first that is under way or begins within half a day.
    """

    site_id: int
    name: str
    kind: str = ""
    reason: str = ""
    allowance: float | None = None
    near_downtime: Downtime | None = None


def standings(now: datetime) -> dict[int, Standing]:
    """Standing of every site, by id. Two queries."""
    return _standings(Site.objects.all(), now)


#: The words for sites as a whole: what keeps DAGs from them, or that nothing does.
STANDING_WORDS = (
    "enabled", "late", "throttled", "downtime", "commissioning", "draining", "banned", "expired",
    "no queue", "disabled",
)  # fmt: skip


def status_of(standing: Standing, *, has_live_ad: bool) -> str:
    """Status of a site in one word."""
    return standing.kind or ("enabled" if has_live_ad else "late")


def statuses_of_sites(now: datetime) -> dict[int, str]:
    """Status of every site in one word, by id. Three queries."""
    live = set(SiteAd.objects.filter(expires_at__gt=now).values_list("site_id", flat=True))
    return {
        pk: status_of(standing, has_live_ad=pk in live) for pk, standing in standings(now).items()
    }


def standing_of(site: Site, now: datetime) -> Standing:
    """The standing of one site."""
    return _standings(Site.objects.filter(pk=site.pk), now)[site.pk]


def with_standing_facts(chosen: QuerySet[Site]) -> QuerySet[Site]:
    """Sites with the columns and relations that their standing depends on."""
    has_queue = Queue.objects.filter(site=OuterRef("pk"), is_enabled=True)
    return chosen.annotate(has_queue=Exists(has_queue)).select_related("advertisement", "throttle")


def queues_and_standings(now: datetime) -> tuple[list[Any], dict[int, Standing]]:
    """All queues by site and name, with `is_open` if pilots may be sent, and how their sites stand.

    Two queries.
    """
    is_open = Exists(enabled_queues(now).filter(pk=OuterRef("pk")))
    rows = Queue.objects.annotate(is_open=is_open).order_by("site__name", "name")
    with_sites = ("site__advertisement", "site__throttle", "owner", "owner_group")
    queues: list[Any] = list(rows.select_related(*with_sites))
    used = {queue.site_id for queue in queues if queue.is_enabled}
    sites: dict[int, Any] = {queue.site_id: queue.site for queue in queues}
    for pk, site in sites.items():
        site.has_queue = pk in used
    return queues, standings_among(sites.values(), now)


def _standings(chosen: QuerySet[Site], now: datetime) -> dict[int, Standing]:
    return standings_among(with_standing_facts(chosen), now)


def standings_among(sites: Iterable[Site], now: datetime) -> dict[int, Standing]:
    """Standings of sites read by `with_standing_facts`: one query more."""
    downtimes: dict[int, list[Downtime]] = {}
    for downtime in downtimes_from(now):
        downtimes.setdefault(downtime.site_id, []).append(downtime)
    return {site.pk: standing_under(site, downtimes.get(site.pk, ()), now) for site in sites}


def standing_under(site: Site, downtimes: Sequence[Downtime], now: datetime) -> Standing:
    """Standing of a site read by `with_standing_facts`, under its planned downtimes by start."""
    allowance = _allowance(site)
    kind, reason = (
        _configured(site)
        or _decided(site)
        or _planned(downtimes, now)
        or _expired(site, now)
        or _throttled(site, allowance)
        or ("", "")
    )
    near = next((each for each in downtimes if each.start <= now + _NEAR), None)
    return Standing(site.pk, site.name, kind, reason, allowance, near)


def _configured(site: Site) -> tuple[str, str] | None:
    if not site.is_enabled:
        return "disabled", "switched off in its configuration"
    # Annotated by `standings`.
    if not site.has_queue:  # type: ignore[attr-defined]
        return "no queue", "without a queue that is switched on"
    return None


def _decided(site: Site) -> tuple[str, str] | None:
    if site.state == SiteState.OPEN:
        return None
    # A new site is commissioning by itself, whoever made it.
    whose = "" if site.state == SiteState.COMMISSIONING else f" by {site.state_by}"
    since = f"since {_time(site.state_since)}: {site.state_reason}"
    return site.state, f"{site.state}{whose} {since}"


def _planned(downtimes: Iterable[Downtime], now: datetime) -> tuple[str, str] | None:
    for downtime in downtimes:
        if downtime.start - now <= timedelta(seconds=downtime.lead_time_s):
            where = "in" if downtime.start <= now else f"before (from {_time(downtime.start)}) its"
            until = f"downtime until {_time(downtime.end)}"
            return "downtime", f"{where} {until}, entered by {downtime.author}: {downtime.reason}"
    return None


def _expired(site: Site, now: datetime) -> tuple[str, str] | None:
    advertisement = getattr(site, "advertisement", None)
    if advertisement is None or advertisement.invalidated_at or advertisement.expires_at > now:
        return None
    return "expired", (
        f"silent: what it advertised expired at {_time(advertisement.expires_at)} and was not "
        "renewed"
    )


def _allowance(site: Site) -> float | None:
    """Whole matches that are left in this period."""
    throttle = getattr(site, "throttle", None)
    if throttle is None or throttle.allowance is None:
        return None
    return max(0.0, float(math.floor(throttle.allowance - throttle.matched)))


def _throttled(site: Site, allowance: float | None) -> tuple[str, str] | None:
    if allowance is None or allowance > 0:
        return None
    throttle = site.throttle
    return "throttled", (
        f"throttled until {_time(throttle.judged_until + PERIOD)} at the earliest: "
        f"{throttle.failures} failures and {throttle.successes} successes of DAGs and pilots in "
        "the ten minutes before this period"
    )


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
