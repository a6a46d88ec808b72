"""Clusters for the walk through the pages: one under way, and one that was removed."""

from __future__ import annotations

from types import SimpleNamespace

from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import lifecycle
from wms.jobs.clusters import materialiser
from wms.jobs.clusters.services import change_clusters, remove_clusters
from wms.jobs.clusters.submit import ClusterSubmission, submit_cluster
from wms.jobs.models import Cluster, Job
from wms.taskqueues.operations import withdraw

_SYSTEM = Actor.system("test")
_SWEEP = """executable = /bin/echo
arguments = --mass $(mass) --seed $(Process)
request_memory = 2000
queue 40 mass in (120 125 130)
"""


def clusters(people: SimpleNamespace) -> tuple[Cluster, Cluster]:
    """A cluster of 120 jobs under way, of which some failed, and a removed one."""
    options = {
        "name": "higgs-mass-scan", "labels": ["higgs", "2026"], "max_idle": 30,
        "max_materialize": 60,
    }  # fmt: skip
    running, removed = _submitted(people.alice, options), _submitted(people.bob, {"max_idle": 5})
    jobs = list(
        Job.objects.filter(cluster_id=running.pk).order_by("process").values_list("pk", flat=True)
    )
    taken = jobs[:20]
    withdraw(taken)
    lifecycle.apply("match", taken, actor=_SYSTEM, attempt_number=1)
    lifecycle.apply("start", taken[2:], actor=_SYSTEM)
    lifecycle.apply("complete", taken[6:16], actor=_SYSTEM)
    for ids, cause in ((taken[16:18], "payload"), (taken[18:], "outputs")):
        lifecycle.apply("fail", ids, actor=_SYSTEM, reason="it did not end well", cause=cause)
    change_clusters(
        [running.pk], actor=Actor.person(people.alice), reason="they need more", memory_mb=2500
    )
    remove_clusters([removed.pk], actor=Actor.person(people.bob), reason="the wrong masses")
    return _gone_on(running), _gone_on(removed)


def _submitted(owner: User, options: dict[str, object]) -> Cluster:
    submission = ClusterSubmission(_SWEEP, options=options)
    return _gone_on(submit_cluster(submission, owner=owner, actor=Actor.person(owner)).cluster)


def _gone_on(cluster: Cluster) -> Cluster:
    while materialiser.advance(cluster.pk) is materialiser.Turn.MORE:
        pass
    cluster.refresh_from_db()
    return cluster
