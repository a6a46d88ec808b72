"""What the dashboard shows, gathered from the selectors of all apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_filters import FilterSet

from portal.filters import DagFilter, JobFilter, PilotFilter
from wms.core.models import User
from wms.core.selectors import LoopHealth, LoopStatus, count_by_state, loop_statuses
from wms.dags.demand import loads_by_site
from wms.dags.models import Dag
from wms.dags.selectors import listed_dags, visible_dags
from wms.dags.states import DagState
from wms.jobs.selectors import visible_jobs
from wms.jobs.states import JobState
from wms.pilots.selectors import live_pilots_by_queue, visible_pilots
from wms.pilots.states import PilotState
from wms.sites.ads import Load
from wms.sites.models import Site
from wms.sites.selectors import listed_sites
from wms.sites.standing import Standing, standings

#: So many lines of a kind fit on the board; the lists behind it have them all.
_LINES = 8
_SITES = 12
_ALARMING = frozenset({"held", "failed", "stalled"})
_UNWANTED = frozenset({"late", "expired", "throttled"})


@dataclass(frozen=True, slots=True)
class Tile:
    """How many things are in a state; alarming when that wants to be looked at."""

    state: str
    count: int
    is_alarming: bool


@dataclass(frozen=True, slots=True)
class SiteLine:
    """A site with what it has to do now."""

    site: Site
    load: Load
    queued_pilots: int
    running_pilots: int
    stalled_pilots: int
    has_live_ad: bool
    standing: Standing

    @property
    def state(self) -> str:
        """The word for the site as a whole."""
        return self.standing.kind or ("enabled" if self.has_live_ad else "late")

    @property
    def matched(self) -> int:
        """What is bound to the site, in the unit of its `max_matches`."""
        return matched_at(self.site, self.load)


@dataclass(frozen=True, slots=True)
class Board:
    """The whole dashboard."""

    dag_tiles: Sequence[Tile]
    job_tiles: Sequence[Tile]
    pilot_tiles: Sequence[Tile]
    attention: Sequence[Dag]
    attention_total: int
    running: Sequence[Dag]
    sites: Sequence[SiteLine]
    loops: Sequence[LoopStatus]

    @property
    def failing_loops(self) -> list[LoopStatus]:
        """The loops whose last run ended with an error."""
        return [loop for loop in self.loops if loop.health == LoopHealth.FAILING]

    @property
    def late_loops(self) -> list[LoopStatus]:
        """The loops that have not run for several of their periods."""
        return [loop for loop in self.loops if loop.health == LoopHealth.LATE]

    @property
    def needy_sites(self) -> list[SiteLine]:
        """The sites to which nothing is matched though nobody wanted that."""
        return [line for line in self.sites if line.state in _UNWANTED]

    @property
    def first_sites(self) -> list[SiteLine]:
        """As many sites as fit, those that take no DAG first."""
        return sorted(self.sites, key=lambda line: line.state == "enabled")[:_SITES]

    @property
    def is_calm(self) -> bool:
        """True when nothing needs a person."""
        return not (self.attention or self.failing_loops or self.late_loops or self.needy_sites)


def board_of(user: User, *, now: datetime) -> Board:
    """Gather the board in a fixed number of queries, whatever there is."""
    needy = DagFilter({"attention": "true"}, queryset=listed_dags(user)).qs
    attention = list(needy.order_by("-state_since")[: _LINES + 1])
    is_cut = len(attention) > _LINES
    running = DagFilter({"state": [DagState.RUNNING]}, queryset=listed_dags(user)).qs
    return Board(
        dag_tiles=_tiles(DagState.values, DagFilter(queryset=visible_dags(user))),
        job_tiles=_tiles(JobState.values, JobFilter(queryset=visible_jobs(user))),
        pilot_tiles=_tiles(PilotState.values, PilotFilter(queryset=visible_pilots(user))),
        attention=attention[:_LINES],
        attention_total=needy.count() if is_cut else len(attention),
        running=list(running[:_LINES]),
        sites=site_lines(user, now=now),
        loops=loop_statuses(now=now),
    )


def _tiles(states: Sequence[str], shown: FilterSet) -> list[Tile]:
    counts = count_by_state(shown.qs)
    return [
        Tile(state, counts.get(state, 0), state in _ALARMING and counts.get(state, 0) > 0)
        for state in states
    ]


def matched_at(site: Site, load: Load) -> int:
    """What is bound to a site, in the unit of its `max_matches`."""
    counts_jobs = site.matches_unit == Site.MatchesUnit.JOBS
    return load.unfinished_nodes if counts_jobs else load.dags


def site_lines(user: User, *, now: datetime) -> list[SiteLine]:
    """All sites with their DAGs and pilots of this moment: six queries."""
    loads, pilots, standing = loads_by_site(), live_pilots_by_queue(), standings(now)
    return [
        _site_line(site, loads.get(site.pk, Load()), pilots, standing[site.pk], now)
        for site in listed_sites(user)
    ]


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
