"""Sites with their current load and standing, for page, API, dashboard and export.

Also their order, their pages, and the number of matches bound to a site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from portal.lists.sorting import Border, Order
from wms.core.models import User
from wms.dags.negotiation.requests import loads_by_site
from wms.pilots.pressure.selectors import unanswered_sites
from wms.pilots.selectors import live_pilots_by_queue
from wms.pilots.states import PilotState
from wms.sites.ads import Load
from wms.sites.models import Site
from wms.sites.selectors import listed_sites
from wms.sites.standing import Standing, standings_among, status_of, with_standing_facts


@dataclass(frozen=True, slots=True)
class SiteLine:
    """Site with its current load and standing; `is_unanswered` where no queue of it answers."""

    site: Site
    load: Load
    queued_pilots: int
    running_pilots: int
    stalled_pilots: int
    has_live_ad: bool
    standing: Standing
    is_unanswered: bool = False

    @property
    def name(self) -> str:
        """The site's name."""
        return self.site.name

    @property
    def state(self) -> str:
        """The word for the site as a whole."""
        return status_of(self.standing, has_live_ad=self.has_live_ad)

    @property
    def matched(self) -> int:
        """Number of matches bound to the site, in the unit of its `max_matches`."""
        return matched_at(self.site, self.load)

    @property
    def why(self) -> str:
        """Reason why the site takes no DAG; empty if it does."""
        if self.state == "late":
            return "its ad has expired or was never published"
        return self.standing.reason


def matched_at(site: Site, load: Load) -> int:
    """Number of matches bound to a site, in the unit of its `max_matches`."""
    counts_jobs = site.matches_unit == Site.MatchesUnit.JOBS
    return load.unfinished_nodes if counts_jobs else load.dags


def site_lines(user: User, *, now: datetime) -> list[SiteLine]:
    """All sites with their DAGs and pilots of this moment: six queries."""
    loads, pilots, unanswered = loads_by_site(), live_pilots_by_queue(), unanswered_sites(now)
    sites = list(with_standing_facts(listed_sites(user)))
    standing = standings_among(sites, now)
    return [
        replace(
            _site_line(site, loads.get(site.pk, Load()), pilots, standing[site.pk], now),
            is_unanswered=site.pk in unanswered,
        )
        for site in sites
    ]


def in_order(lines: Sequence[SiteLine], order: Order) -> list[SiteLine]:
    """Lines in the requested order."""
    return sorted(lines, key=lambda line: _place(line, order), reverse=order.is_falling)


def behind(lines: Sequence[SiteLine], order: Order, border: Border) -> list[SiteLine]:
    """Lines in order that come behind a border."""
    place = (border.key, border.pk)
    return [
        line
        for line in lines
        if (_place(line, order) < place if order.is_falling else _place(line, order) > place)
    ]


def border_of(line: SiteLine, order: Order) -> Border:
    """Border at a line."""
    return Border(*_place(line, order))


def _place(line: SiteLine, order: Order) -> tuple[Any, int]:
    return getattr(line, order.sort.field), line.site.pk


def _site_line(
    site: Site,
    load: Load,
    pilots: Mapping[int, Mapping[str, int]],
    standing: Standing,
    now: datetime,
) -> SiteLine:
    of_queues: list[Mapping[str, int]] = [pilots.get(queue.pk, {}) for queue in site.queues.all()]

    def total(*states: PilotState) -> int:
        return sum(counts.get(state.value, 0) for counts in of_queues for state in states)

    ad: Any = getattr(site, "ad", None)
    return SiteLine(
        site=site,
        load=load,
        queued_pilots=total(PilotState.SUBMITTED, PilotState.QUEUED),
        running_pilots=total(PilotState.RUNNING),
        stalled_pilots=total(PilotState.STALLED),
        has_live_ad=ad is not None and ad.expires_at > now,
        standing=standing,
    )
