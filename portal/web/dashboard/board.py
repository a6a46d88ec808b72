"""Data of the dashboard: attention items, waiting gates, counts by state, causes, running work.

Also sites and control loops, and the scope: the user's own work, or everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.utils.http import urlencode

from portal.lists.filters import DagFilter, PilotFilter
from portal.lists.job_filter import JobFilter
from portal.shared.site_lines import SiteLine
from portal.shared.site_strip import strip_lines
from portal.web.dashboard.attention_rows import attention_rows
from portal.web.dashboard.needs_attention import (
    AttentionItem,
    attention_items_of,
    in_turns,
)
from portal.web.templatetags.pilotage import about
from wms.core.database.counting import Count, count_each
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.core.selectors import LoopHealth, LoopStatus, loop_statuses
from wms.dags.models import Dag
from wms.dags.reading.gate_selectors import WaitingGate, gates_to_decide
from wms.dags.reading.selectors import attention_and_running, listed_dags
from wms.dags.states import DagState
from wms.failures.selectors import (
    CountedGroup,
    Window,
    counted_groups,
    first_failures,
    own_groups,
    visible_groups,
)
from wms.failures.states import WANTED
from wms.jobs.clusters.selectors import listed_clusters
from wms.jobs.clusters.states import ClusterState
from wms.jobs.models import Cluster
from wms.jobs.selectors import visible_jobs
from wms.jobs.states import JobState
from wms.pilots.selectors import visible_pilots
from wms.pilots.states import PilotState
from wms.remarks.selectors import Care, cares_of
from wms.remarks.states import SubjectKind

#: Most lines of a kind on the board; the linked lists have all.
_LINES = 8
_SITES = 12
#: DAGs in need that are read: those that need the same are one line.
_NEEDY = 200
_CAUSES = 5
_GATES = 20
_SICK = frozenset({LoopHealth.LATE, LoopHealth.FAILING})
_ALARMING = frozenset({"held", "failed", "stalled"})
_ATTENTION = "dag/attention"


class Scope(StrEnum):
    """Scope of the dashboard: the user's own work, or everything."""

    MINE = "mine"
    ALL = "all"

    @classmethod
    def usual(cls, user: User) -> Scope:
        """Default scope: own work for users below shifter, everything for viewers and shifters."""
        is_owner = has_role(user, Role.USER) and not has_role(user, Role.SHIFTER)
        return cls.MINE if is_owner else cls.ALL


@dataclass(frozen=True, slots=True)
class Tile:
    """A state, the number of things in it, and the link to their list; alarming for trouble."""

    state: str
    count: Count
    query: str

    @property
    def is_alarming(self) -> bool:
        """True for a state of trouble with anything in it."""
        return self.state in _ALARMING and self.count.value > 0


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the dashboard shows."""

    scope: Scope
    window: Window
    owner: str
    dag_tiles: Sequence[Tile]
    job_tiles: Sequence[Tile]
    pilot_tiles: Sequence[Tile]
    attention_items: Sequence[AttentionItem]
    attention: Sequence[Dag]
    attention_total: Count
    gates: Sequence[WaitingGate]
    running: Sequence[Dag]
    clusters: Sequence[Cluster]
    causes: Sequence[CountedGroup]
    cares: Mapping[tuple[str, int], Care]
    sites: Sequence[SiteLine]
    loops: Sequence[LoopStatus]

    @property
    def of_owner(self) -> str:
        """Part of list addresses that filters by the owner."""
        return f"&{urlencode({'owner': self.owner})}" if self.owner else ""

    @property
    def first_items(self) -> list[AttentionItem]:
        """Attention items that are shown at once, so that the counts stay in sight."""
        return in_turns(self.attention_items, _LINES)

    @property
    def further_items(self) -> list[AttentionItem]:
        """Attention items that are folded in."""
        shown = {item.mark for item in self.first_items}
        return [item for item in self.attention_items if item.mark not in shown]

    @property
    def first_sites(self) -> list[SiteLine]:
        """First sites: those that take no DAG, then those with a downtime near, then the others."""
        return sorted(
            self.sites,
            key=lambda line: (line.state == "enabled", line.standing.near_downtime is None),
        )[:_SITES]

    @property
    def sick_loops(self) -> list[LoopStatus]:
        """Control loops that are late or failing."""
        return [loop for loop in self.loops if loop.health in _SICK]

    @property
    def healthy_loops(self) -> list[LoopStatus]:
        """Control loops that run on time, or are not due for the first time yet."""
        return [loop for loop in self.loops if loop.health not in _SICK]

    @property
    def is_calm(self) -> bool:
        """Whether nothing needs attention."""
        return not self.attention_items


def board_of(user: User, *, now: datetime, scope: Scope, window: Window) -> Board:
    """Board of a user, in a fixed number of queries."""
    is_mine = scope == Scope.MINE
    owner = user.get_username() if is_mine else ""
    dags, jobs = _of(listed_dags(user), user, scope), _of(visible_jobs(user), user, scope)
    counts = _counts(user, dags, jobs, now)
    needy, running = attention_and_running(dags, now=now, needy_limit=_NEEDY, running_limit=_LINES)
    sites, loops = strip_lines(user, now=now), loop_statuses(now=now)
    causes = _causes(user, scope, window, now)
    cares = cares_of(
        {
            SubjectKind.DAG: needy,
            SubjectKind.SITE: [line.site for line in sites],
            SubjectKind.FAILURE: [hit.group for hit in causes],
        },
        now=now,
    )
    attention_items = attention_items_of(
        dags=needy,
        failed_at=first_failures([dag.pk for dag in needy if dag.failed_count]),
        cares=cares,
        loops=[] if is_mine else loops,
        sites=[] if is_mine else sites,
        rows=attention_rows(user, jobs, is_whole=not is_mine, now=now),
        held_jobs=about(counts["job/held"]),
        owner=owner,
    )
    return Board(
        scope=scope,
        window=window,
        owner=owner,
        dag_tiles=_tiles("dag", DagState.values, counts, owner),
        job_tiles=_tiles("job", JobState.values, counts, owner),
        pilot_tiles=_tiles("pilot", PilotState.values, counts, ""),
        attention_items=attention_items,
        attention=needy,
        attention_total=counts[_ATTENTION],
        gates=gates_to_decide(user, only_asked=is_mine, limit=_GATES),
        running=running,
        clusters=list(
            _of(listed_clusters(user), user, scope).filter(state=ClusterState.ACTIVE)[:_LINES]
        ),
        causes=causes,
        cares=cares,
        sites=sites,
        loops=loops,
    )


def _of(rows: QuerySet[Any], user: User, scope: Scope) -> QuerySet[Any]:
    """Rows in the scope; the filter by the user's id needs no query for the user."""
    return rows.filter(owner=user) if scope == Scope.MINE else rows


def _counts(
    user: User, dags: QuerySet[Any], jobs: QuerySet[Any], now: datetime
) -> dict[str, Count]:
    """Number of rows by state, by the filters of the lists. Two queries at most."""
    lists: dict[str, QuerySet[Any]] = {
        _ATTENTION: DagFilter({"attention": "true"}, queryset=dags, now=now).qs
    }
    kinds = (
        ("dag", DagFilter, dags, DagState.values),
        ("job", JobFilter, jobs, JobState.values),
        ("pilot", PilotFilter, visible_pilots(user), PilotState.values),
    )
    for kind, filter_class, rows, states in kinds:
        for state in states:
            lists[f"{kind}/{state}"] = filter_class({"state": state}, queryset=rows, now=now).qs
    return count_each(lists)


def _tiles(kind: str, states: Sequence[str], counts: Mapping[str, Count], owner: str) -> list[Tile]:
    of_owner = {"owner": owner} if owner else {}
    return [
        Tile(state, counts[f"{kind}/{state}"], f"?{urlencode({'state': state, **of_owner})}")
        for state in states
    ]


def _causes(user: User, scope: Scope, window: Window, now: datetime) -> list[CountedGroup]:
    """Failure groups with most failures; muted and resolved ones are left out."""
    if scope == Scope.MINE:
        return own_groups(user, window, now=now, limit=_CAUSES)
    wanted = visible_groups(user).filter(state__in=WANTED)
    return counted_groups(user, wanted, window, now=now, site="", limit=_CAUSES)
