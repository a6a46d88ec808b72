"""Sample clusters for tests: submission, turns of the materialiser, numbers of the jobs made."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.clusters import materialiser
from wms.jobs.clusters.submit import ClusterSubmission, SubmittedCluster, submit_cluster
from wms.jobs.models import Cluster, Job

SYSTEM = Actor.system("test")
PLAIN = "executable = /bin/true\narguments = $(Process)\n"


def submit(
    owner: User, description: Any, files: Mapping[str, str] | None = None, **more: Any
) -> SubmittedCluster:
    """Submit a cluster as its owner."""
    streams = {name: io.BytesIO(text.encode()) for name, text in (files or {}).items()}
    submission = ClusterSubmission(description, files=streams, **more)
    return submit_cluster(submission, owner=owner, actor=Actor.person(owner))


def go_on(cluster: Cluster) -> Cluster:
    """Give turns until there is nothing more to do; the cluster as it is then."""
    while materialiser.advance(cluster.pk) is materialiser.Turn.MORE:
        pass
    cluster.refresh_from_db()
    return cluster


def cycle(cluster: Cluster) -> Cluster:
    """One cycle of the materialiser, as its task runs it, at a time when nothing pauses."""
    Cluster.objects.filter(look_at__isnull=False).update(look_at=timezone.now())
    materialiser.run_cycle(timezone.now())
    cluster.refresh_from_db()
    return cluster


def processes(cluster: Cluster, **conditions: Any) -> list[int]:
    """Numbers of the cluster's jobs that were made."""
    jobs = Job.objects.filter(cluster_id=cluster.pk, **conditions)
    return list(jobs.order_by("process").values_list("process", flat=True))
