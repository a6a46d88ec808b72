"""Selectors of clusters that a user may see: lists, progress, jobs, faulty rows and events.

Also the cluster of a job, the reruns of a cluster, and the causes of its failed jobs, counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.core.errors import NotFound
from wms.core.models import User
from wms.jobs.clusters.live_jobs import live_states
from wms.jobs.clusters.states import TOPIC
from wms.jobs.models import Cluster, ClusterEvent, ClusterFault, Job
from wms.jobs.states import JobState

#: Failed jobs whose causes are counted: the first ones tell enough.
MAX_CAUSES_READ = 10_000
#: Further clusters that a page names.
MAX_RERUNS_READ = 20


@dataclass(frozen=True, slots=True)
class ClusterProgress:
    """Number of rows of a cluster by what has become of them; their sum is its size.

    `live` has the jobs that have not ended by their states. Ends are counted within seconds, so
    that `ending` may be jobs whose end is not counted yet.
    """

    size: int
    not_yet_made: int
    never_made: int
    faulty: int
    done: int
    failed: int
    killed: int
    live: dict[str, int]
    ending: int


def visible_clusters(user: User) -> QuerySet[Cluster]:
    """The clusters that the user may read: those of the user's frontends."""
    return seen_by(user, Cluster.objects.all(), Walls.by_group)


def listed_clusters(user: User) -> QuerySet[Cluster]:
    """Visible clusters with what a list shows, latest first."""
    return visible_clusters(user).select_related("owner", "accounting_group").order_by("-pk")


def find_cluster(user: User, cluster_id: int) -> Cluster:
    """One visible cluster. Raises NotFound."""
    cluster = listed_clusters(user).filter(pk=cluster_id).first()
    if cluster is None:
        raise NotFound(f"There is no cluster {cluster_id}, or you may not see it.")
    return cluster


def progress_of(cluster: Cluster) -> ClusterProgress:
    """Progress of a cluster: how many rows are in which state. A query, bounded by its limits."""
    states = live_states(cluster.pk)
    return ClusterProgress(
        size=cluster.size,
        not_yet_made=cluster.waiting_rows,
        never_made=cluster.never_made_count,
        faulty=cluster.faulty_count,
        done=cluster.done_count,
        failed=cluster.failed_count,
        killed=cluster.killed_count,
        live=states,
        ending=max(0, cluster.live_count - sum(states.values())),
    )


def jobs_of_cluster(user: User, cluster: Cluster) -> QuerySet[Job]:
    """The jobs that were made of a cluster, by their numbers in it."""
    del user
    return Job.objects.filter(cluster_id=cluster.pk, topic=TOPIC).order_by("process")


def find_job_of_cluster(user: User, cluster: Cluster, process: int) -> Job:
    """The job with a number in its cluster. Raises NotFound."""
    job = jobs_of_cluster(user, cluster).filter(process=process).first()
    if job is None:
        raise NotFound(f"Cluster {cluster.pk} has no job {process}, or it is not made yet.")
    return job


def cluster_of_job(job: Job) -> Cluster | None:
    """The cluster that a job was submitted with; None for a job of a DAG. One query at most."""
    if job.topic != TOPIC:
        return None
    return Cluster.objects.filter(pk=job.topic_key).first()


def reruns_of(cluster: Cluster) -> list[Cluster]:
    """Clusters that run its failed jobs again; the first of very many."""
    return list(cluster.reruns.order_by("pk")[:MAX_RERUNS_READ])


def failure_causes(cluster: Cluster) -> dict[str, int]:
    """How often which cause is among the first failed jobs of a cluster. A query."""
    failed = Job.objects.filter(topic=TOPIC, topic_key=cluster.pk, state=JobState.FAILED)
    causes = failed.order_by().values_list("state_cause", flat=True)
    return dict(Counter(causes[:MAX_CAUSES_READ]).most_common())


def faults_of(cluster: Cluster) -> QuerySet[ClusterFault]:
    """Rows that no job could be made of, with the reasons; the first of very many."""
    return cluster.faults.order_by("process")


def events_of_cluster(cluster: Cluster) -> QuerySet[ClusterEvent]:
    """The events of a cluster, latest first."""
    return cluster.events.order_by("-pk")
