"""Rerun of the failed jobs of a cluster as a new one, with other memory, sites or priority.

Killed ones run again, too, if asked for. The jobs keep their numbers and share the workspace. While
a rerun has not ended, another one is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, ReasonRequired
from wms.core.loops import wake_loop
from wms.jobs.clusters import lifecycle
from wms.jobs.clusters.live_jobs import jobs_of
from wms.jobs.clusters.services import checked_changes, locked_clusters
from wms.jobs.clusters.states import CLUSTER_ALIVE
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Blob, Cluster, ClusterTable
from wms.jobs.quotas import check_quota
from wms.jobs.states import JobState
from wms.jobs.writing.job_writer import new_ids


@transaction.atomic
def rerun_cluster(
    cluster_id: int,
    *,
    actor: Actor,
    reason: str,
    with_killed: bool = False,
    priority: int | None = None,
    sites: Sequence[str] | None = None,
    banned_sites: Sequence[str] | None = None,
    memory_mb: int | None = None,
) -> Cluster:
    """Run the jobs of a cluster that failed once more, as a new cluster of the same owner.

    The jobs keep their numbers, and so all values of their rows; they share the workspace. Raises
    NotFound, NotPermitted, ReasonRequired, InvalidInput, QuotaExceeded, and Conflict where none
    has failed, or a rerun of them has not ended: a request that comes twice runs no job twice.
    """
    [cluster] = locked_clusters([cluster_id], actor)
    if not reason.strip():
        raise ReasonRequired("rerun")
    going_on = cluster.reruns.filter(state__in=CLUSTER_ALIVE).order_by("pk").first()
    if going_on is not None:
        raise Conflict(
            f"Failed jobs of cluster {cluster_id} run again already, as cluster {going_on.pk}: "
            "remove that, or wait for its end."
        )
    given = (priority, sites, banned_sites, memory_mb)
    changes = {} if all(each is None for each in given) else checked_changes(*given)
    states = [JobState.FAILED.value, *([JobState.KILLED.value] if with_killed else [])]
    found = jobs_of(cluster.pk, states).order_by("process").values_list("process", flat=True)
    numbers = array("Q", found.iterator(chunk_size=10_000))
    if not numbers:
        raise Conflict(f"No job of cluster {cluster_id} has failed.")
    group = cluster.accounting_group
    check_quota(owner=cluster.owner, group=group, jobs=len(numbers), clusters=1)
    rerun = _copy(cluster, store_bytes(numbers.tobytes()), len(numbers))
    rerun.overrides = {**cluster.overrides, **changes}
    rerun.save(update_fields=["overrides"])
    facts = {"previous": cluster.pk, "reason": reason.strip(), **changes}
    lifecycle.note_submission(rerun, facts, actor=actor)
    record_action("rerun cluster", target=f"cluster {cluster.pk}", actor=actor, reason=reason,
                  facts={"cluster": rerun.pk, "jobs": rerun.size})  # fmt: skip
    transaction.on_commit(partial(wake_loop, lifecycle.MATERIALISE_TASK))
    return rerun


def _copy(cluster: Cluster, selection: Blob, size: int) -> Cluster:
    [pk] = new_ids(1)
    now = timezone.now()
    rerun = Cluster.objects.create(
        id=pk,
        name=cluster.name,
        owner_id=cluster.owner_id,
        accounting_group_id=cluster.accounting_group_id,
        labels=cluster.labels,
        workspace_id=cluster.workspace_id,
        language=cluster.language,
        description_id=cluster.description_id,
        selection=selection,
        size=size,
        max_idle=cluster.max_idle,
        max_materialize=cluster.max_materialize,
        previous=cluster,
        look_at=now,
        created_at=now,
    )
    tables = list(cluster.tables.all())
    for table in tables:
        table.pk, table.cluster = None, rerun
    ClusterTable.objects.bulk_create(tables)
    return rerun
