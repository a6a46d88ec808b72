"""Progress of a campaign in pieces, and the times at which pieces of it ended lately.

A piece is a node of a DAG, or a job of a cluster. What is run once more counts once: of a DAG that
goes on as a new run, and of a cluster whose failed jobs run again, the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Count,
    Exists,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Cast, Extract

from wms.campaigns.forecast import BINS
from wms.dags.models import Dag, Node
from wms.dags.states import COUNTED_KINDS, DAG_TERMINAL, DagState, NodeState
from wms.jobs.clusters.states import CLUSTER_TERMINAL, TOPIC, ClusterState
from wms.jobs.models import Cluster, Job
from wms.jobs.states import JobState

_STANDING = (DagState.HELD.value, DagState.HALTED.value)


@dataclass(frozen=True, slots=True)
class Progress:
    """Pieces of a campaign, and since and until when there are any.

    `left` can still end; of them `standing_still` are held or halted. What is neither left nor done
    has failed, was killed, waited for what failed, or is of what was removed.
    """

    total: int = 0
    done: int = 0
    failed: int = 0
    left: int = 0
    standing_still: int = 0
    begun_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def lost(self) -> int:
        """Pieces that will never be done, but for those that failed themselves."""
        return self.total - self.done - self.failed - self.left

    @property
    def part_done(self) -> float:
        """Part that is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0


def latest_runs(dags: QuerySet[Dag]) -> QuerySet[Dag]:
    """DAGs without those that went on among them as another run of their files, or an edited one.

    An edited copy that is none of these, as of somebody else, takes no DAG's place.
    """
    later = dags.filter(previous_run=OuterRef("pk")).order_by()
    return dags.filter(~Exists(later)).order_by()


def progress_of(dags: QuerySet[Dag], clusters: QuerySet[Cluster]) -> Progress:
    """Progress of DAGs and clusters. Two queries."""
    of_dags, of_clusters = _of_dags(dags), _of_clusters(clusters)
    sums = {
        name: (of_dags[name] or 0) + (of_clusters[name] or 0)
        for name in ("total", "done", "failed", "left", "standing_still")
    }
    begun = [at for each in (of_dags, of_clusters) if (at := each["begun"]) is not None]
    ends = [at for each in (of_dags, of_clusters) if (at := each["ended"]) is not None]
    is_over = sums["total"] > 0 and not (of_dags["alive"] or of_clusters["alive"])
    return Progress(
        **sums,
        begun_at=min(begun, default=None),
        ended_at=max(ends, default=None) if is_over else None,
    )


def _of_dags(dags: QuerySet[Dag]) -> dict[str, Any]:
    alive = ~Q(state__in=DAG_TERMINAL)
    ended = F("done_count") + F("failed_count") + F("futile_count") + F("skipped_count")
    left = F("node_count") - ended
    return latest_runs(dags).aggregate(
        total=Sum("node_count"),
        # What was skipped as its conditions say is as it should be.
        done=Sum(F("done_count") + F("skipped_count")),
        failed=Sum("failed_count"),
        left=Sum(left, filter=alive),
        standing_still=Sum(left, filter=Q(state__in=_STANDING)),
        begun=Min("created_at"),
        ended=Max("ended_at"),
        alive=Count("pk", filter=alive),
    )


def _of_clusters(clusters: QuerySet[Cluster]) -> dict[str, Any]:
    alive = ~Q(state__in=CLUSTER_TERMINAL)
    ended = F("done_count") + F("failed_count") + F("killed_count") + F("faulty_count")
    rerun = Exists(Cluster.objects.filter(previous=OuterRef("pk")))
    rows = clusters.order_by().annotate(is_rerun=rerun)
    again = Q(is_rerun=True)
    return rows.aggregate(
        # A rerun has the jobs that failed, so that they count there.
        total=Sum(F("size") - F("failed_count"), filter=again, default=0)
        + Sum("size", filter=~again, default=0),
        done=Sum("done_count"),
        failed=Sum(F("failed_count") + F("faulty_count"), filter=~again),
        left=Sum(F("size") - ended, filter=alive),
        standing_still=Sum(F("size") - ended, filter=Q(state=ClusterState.HELD)),
        begun=Min("created_at"),
        ended=Max("state_since", filter=~alive),
        alive=Count("pk", filter=alive),
    )


def recent_ends(
    dags: QuerySet[Dag], clusters: QuerySet[Cluster], *, window: timedelta, now: datetime
) -> list[int]:
    """Number of pieces that were done in each part of the window up to now, the oldest first.

    Two queries, which read the nodes of the DAGs that have not ended, or ended in it.
    """
    if not window:
        return [0] * BINS
    since = now - window
    busy = latest_runs(dags).filter(Q(ended_at=None) | Q(ended_at__gte=since)).values("pk")
    nodes = Node.objects.filter(dag__in=busy, kind__in=COUNTED_KINDS, state=NodeState.DONE)
    keys = clusters.order_by().filter(~Q(state__in=CLUSTER_TERMINAL) | Q(state_since__gte=since))
    jobs = Job.objects.filter(topic=TOPIC, topic_key__in=keys.values("pk"), state=JobState.DONE)
    ends = [0] * BINS
    for rows in (nodes, jobs):
        for place, count in _by_part(rows, since, now):
            ends[min(place, BINS) - 1] += count
    return ends


def _by_part(rows: QuerySet[Any], since: datetime, now: datetime) -> list[tuple[int, int]]:
    at = Cast(Extract("state_since", "epoch"), FloatField())
    part = Func(
        at, Value(since.timestamp()), Value(now.timestamp()), Value(BINS),
        function="width_bucket", output_field=IntegerField(),
    )  # fmt: skip
    chosen = rows.filter(state_since__gte=since, state_since__lte=now).order_by()
    return list(chosen.annotate(part=part).values_list("part").annotate(Count("pk")))
