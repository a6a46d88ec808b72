"""Live jobs of a cluster (those that have not ended): their number by state, and changes to all.

They are held, released, killed or changed as the cluster's row says, in batches, each in the
transaction of a turn of the materialiser: whatever is killed in between, the next turn finds what
is left by the state of the jobs themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from wms.jobs import operations as jobs
from wms.jobs.clusters.lifecycle import MATERIALISER
from wms.jobs.clusters.rendering import Overrides
from wms.jobs.clusters.states import TOPIC, ClusterState
from wms.jobs.job_changes import change_open_jobs
from wms.jobs.models import Cluster, Job
from wms.jobs.states import TERMINAL, JobCause, JobState

#: Jobs that are changed in one transaction.
BATCH = 500
_ALIVE = sorted(frozenset(JobState.values) - TERMINAL)
_IDLE = (JobState.RECEIVED.value, JobState.WAITING.value)


@dataclass(frozen=True, slots=True)
class Live:
    """Number of jobs that have not ended, and of those of them that wait."""

    total: int
    idle: int


def jobs_of(cluster_id: int, states: Collection[str]) -> QuerySet[Job]:
    """The jobs of a cluster in these states; served by `job_by_topic`."""
    return Job.objects.filter(topic=TOPIC, topic_key=cluster_id, state__in=states)


def live_states(cluster_id: int) -> dict[str, int]:
    """Number of a cluster's jobs by states that are no end. A query, bounded by its limits."""
    counted = jobs_of(cluster_id, _ALIVE).order_by().values("state").annotate(number=Count("pk"))
    return dict(counted.values_list("state", "number"))


def live(cluster_id: int) -> Live:
    """The same, in sum."""
    counts = live_states(cluster_id)
    return Live(sum(counts.values()), sum(counts.get(state, 0) for state in _IDLE))


def follow_state(cluster: Cluster) -> bool:
    """Do to a batch of live jobs what the cluster's state asks for; whether any were changed.

    The cluster's row is locked.
    """
    if cluster.state == ClusterState.HELD:
        return _hold(cluster)
    if cluster.state == ClusterState.REMOVED:
        return _kill(cluster)
    return _release(cluster)


def _hold(cluster: Cluster) -> bool:
    """Hold those that wait; what has a pilot may end."""
    found = _ids(jobs_of(cluster.pk, _IDLE))
    applied = jobs.hold_jobs(
        found,
        actor=MATERIALISER,
        reason=f"the cluster is held: {cluster.state_reason}",
        cause=JobCause.CLUSTER_HELD,
        is_announced=False,
    )
    return bool(applied.changed)


def _release(cluster: Cluster) -> bool:
    held = jobs_of(cluster.pk, [JobState.HELD]).filter(state_cause=JobCause.CLUSTER_HELD)
    applied = jobs.release_jobs(_ids(held), actor=MATERIALISER, reason="the cluster is released")
    return bool(applied.changed)


def _kill(cluster: Cluster) -> bool:
    applied = jobs.kill_jobs(
        _ids(jobs_of(cluster.pk, _ALIVE)),
        actor=MATERIALISER,
        reason=f"the cluster was removed: {cluster.state_reason}",
        cause=JobCause.CLUSTER_ENDED,
    )
    return bool(applied.changed)


def follow_changes(cluster: Cluster) -> bool:
    """Give a batch of live jobs the changes that are pending; whether there were any.

    Jobs that were made with them already have them. The cluster's row is locked; its columns are
    set, to be saved by the caller.
    """
    if cluster.pending_changes is None:
        return False
    # By their states, of which the limits let there be so many, not by all that were ever made.
    rest = jobs_of(cluster.pk, _ALIVE).filter(process__gte=cluster.pending_from)
    rows = list(rest.order_by("process").values_list("pk", "process")[:BATCH])
    changes = Overrides.of(cluster.pending_changes)
    ids = [pk for pk, _ in rows]
    change_open_jobs(
        ids,
        priority=changes.priority,
        needs=changes.needs,
        actor=MATERIALISER,
        reason="its cluster was changed",
    )
    if len(rows) < BATCH:
        cluster.pending_changes, cluster.pending_from = None, 0
    else:
        cluster.pending_from = rows[-1][1] + 1
    return bool(rows)


def _ids(found: QuerySet[Job]) -> list[int]:
    return list(found.order_by("pk").values_list("pk", flat=True)[:BATCH])
