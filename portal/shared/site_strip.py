"""Sites in short for the dashboard's strip: state and load, with fewer queries than the list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.shared.site_lines import SiteLine
from wms.core.models import User
from wms.dags.negotiation.requests import SiteWork, work_by_site
from wms.pilots.pressure.selectors import unanswered_sites
from wms.pilots.states import PilotState
from wms.sites.selectors import visible_sites
from wms.sites.standing import standings


def strip_lines(user: User, *, now: datetime) -> list[SiteLine]:
    """All sites that the user may see, by name, as their list shows them. Five queries."""
    work, standing, unanswered = work_by_site(), standings(now), unanswered_sites(now)
    nothing = SiteWork()
    lines = []
    for site in visible_sites(user).order_by("name"):
        here = work.get(site.pk, nothing)
        ad: Any = getattr(site, "ad", None)
        lines.append(
            SiteLine(
                site=site,
                load=here.load,
                queued_pilots=_total(here, PilotState.SUBMITTED, PilotState.QUEUED),
                running_pilots=_total(here, PilotState.RUNNING),
                stalled_pilots=_total(here, PilotState.STALLED),
                has_live_ad=ad is not None and ad.expires_at > now,
                standing=standing[site.pk],
                is_unanswered=site.pk in unanswered,
            )
        )
    return lines


def _total(work: SiteWork, *states: PilotState) -> int:
    return sum(work.pilots.get(state.value, 0) for state in states)
