"""Figures of a DAG's stay at its site (failed nodes, times, ...), for rematch expressions."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet

from matching.negotiation.rematch import Figures
from wms.dags.models import Dag, Node, NodeEvent
from wms.dags.states import NodeState
from wms.jobs.selectors import first_site
from wms.jobs.states import WITH_PILOT, JobState
from wms.pilots.models import Pilot
from wms.pilots.states import PilotState

_FAILED_PILOTS = (PilotState.FAILED, PilotState.ABORTED)
_HERE = Q(job_site=F("dag__site__name"))
_WAITING = _HERE & Q(job__state=JobState.WAITING)


@dataclass(frozen=True, slots=True)
class _SubmittedWork:
    """Running and queued nodes of a DAG at its site."""

    running: int = 0
    queued: int = 0
    queued_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stay:
    """Stay of a DAG at its site: time of the match, and figures until now."""

    matched_at: datetime
    figures: Figures


def stays_of(dags: QuerySet[Dag], *, now: datetime) -> dict[int, Stay]:
    """Stays by DAG id; DAGs without a match are absent.

    Jobs that finish at an earlier site are not counted.
    """
    # Read first: a DAG that is rematched meanwhile is recognized by its time of match.
    columns = ("pk", "site_id", "matched_at", "node_count", "done_count", "rematch_count")
    rows = list(dags.filter(matched_at__isnull=False).order_by().values_list(*columns))
    works, failures = _work_by_dag(dags), _failures_by_dag(dags)
    pilots = _pilot_failures_by_site([(site_id, matched_at) for _, site_id, matched_at, *_ in rows])
    nothing = _SubmittedWork()
    stays = {}
    for pk, site_id, matched_at, nodes, done, rematches in rows:
        work = works.get(pk, nothing)
        figures = Figures(
            matched_s=_seconds(matched_at, now),
            queued_s=_seconds(work.queued_since, now),
            nodes_total=nodes,
            nodes_running=work.running,
            nodes_queued=work.queued,
            nodes_done=done,
            nodes_failed_here=failures.get(pk, 0),
            pilots_failed_here=len(pilots[site_id]) - bisect_left(pilots[site_id], matched_at),
            rematches=rematches,
        )
        stays[pk] = Stay(matched_at, figures)
    return stays


def _work_by_dag(dags: QuerySet[Dag]) -> dict[int, _SubmittedWork]:
    rows = (
        Node.objects.filter(dag__in=dags.order_by().values("pk"), state=NodeState.SUBMITTED)
        .annotate(job_site=first_site("job__"))
        .order_by()
        .values_list("dag_id")
        .annotate(
            running=Count("pk", filter=_HERE & Q(job__state__in=WITH_PILOT)),
            queued=Count("pk", filter=_WAITING),
            since=Min("job__state_since", filter=_WAITING),
        )
    )
    return {pk: _SubmittedWork(running, queued, since) for pk, running, queued, since in rows}


def _failures_by_dag(dags: QuerySet[Dag]) -> dict[int, int]:
    """Number of node failures since the match by DAG, including retried ones."""
    events = NodeEvent.objects.filter(
        dag__in=dags.order_by().values("pk"),
        event__in=["fail", "retry"],
        created_at__gte=F("dag__matched_at"),
    )
    return dict(events.order_by().values_list("dag_id").annotate(count=Count("pk")))


def _pilot_failures_by_site(stays: Sequence[tuple[int, datetime]]) -> dict[int, list[datetime]]:
    """Times of pilot failures by site, in order, since the first of these matches."""
    ends: dict[int, list[datetime]] = defaultdict(list)
    if stays:
        failed = Pilot.objects.filter(
            queue__site_id__in={site_id for site_id, _ in stays},
            state__in=_FAILED_PILOTS,
            ended_at__gte=min(matched_at for _, matched_at in stays),
        )
        rows: Iterable[tuple[int, Any]] = failed.values_list("queue__site_id", "ended_at")
        for site_id, ended_at in sorted(rows):
            ends[site_id].append(ended_at)
    return ends


def _seconds(since: datetime | None, now: datetime) -> int:
    return 0 if since is None else max(0, int((now - since).total_seconds()))
