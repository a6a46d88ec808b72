"""Leases of clusters' outputs: until when they are kept, their begin, whether outputs are removed.

Raises `OutputsRemoved` for outputs that are gone. Also whether a job has an output sandbox at all:
outputs of jobs outside of clusters are workspace files.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from wms.core.conf import conf
from wms.core.errors import NotFound
from wms.jobs.clusters.states import CLUSTER_TERMINAL, TOPIC
from wms.jobs.models import Cluster, Job, OutputLease


class OutputsRemoved(NotFound):
    """These outputs were there, and were removed when their time was over."""

    code = "outputs-removed"


def begin_if_ended(cluster: Cluster, *, now: datetime) -> None:
    """Begin the lease of a cluster whose jobs have all ended and will all be; once."""
    if cluster.state in CLUSTER_TERMINAL and not cluster.live_count:
        until = now + timedelta(seconds=conf().outputs_kept_s)
        lease = OutputLease(cluster=cluster, began_at=now, kept_until=until)
        OutputLease.objects.bulk_create([lease], ignore_conflicts=True)


def latest_end(now: datetime) -> datetime:
    """The latest time up to which outputs can be kept, as seen now."""
    return now + timedelta(seconds=conf().outputs_kept_most_s)


def has_sandbox(job: Job) -> bool:
    """Whether the outputs of a job are its own; those of others are files of a workspace."""
    return job.topic == TOPIC


def lease_of(cluster_id: int) -> OutputLease | None:
    """The lease of a cluster; None before its end."""
    return OutputLease.objects.filter(pk=cluster_id).first()


def lease_of_job(job: Job) -> OutputLease | None:
    """The lease of the outputs of a job of a cluster that has ended; None for others."""
    return lease_of(job.cluster_id) if has_sandbox(job) else None


def are_removed(job: Job, lease: OutputLease | None) -> bool:
    """Whether the outputs of a job went at the end of their lease."""
    if lease is None:
        return False
    return lease.removed_at is not None or job.process < lease.removed_before


def without_outputs(jobs: Sequence[Job]) -> Collection[int]:
    """Ids of those jobs whose outputs went. One query."""
    clusters = {job.cluster_id for job in jobs if has_sandbox(job)}
    leases = OutputLease.objects.in_bulk(clusters)
    return {job.pk for job in jobs if are_removed(job, leases.get(job.cluster_id))}


def require_kept(job: Job) -> None:
    """Raise OutputsRemoved when the outputs of a job have gone."""
    lease = lease_of_job(job)
    if lease is not None and are_removed(job, lease):
        raise _removed(f"job {job.pk}", lease)


def require_cluster_kept(cluster: Cluster) -> None:
    """Raise OutputsRemoved when no outputs of a cluster are kept any more."""
    lease = lease_of(cluster.pk)
    if lease is not None and lease.removed_at is not None:
        raise _removed(f"cluster {cluster.pk}", lease)


def _removed(what: str, lease: OutputLease) -> OutputsRemoved:
    return OutputsRemoved(
        f"The outputs of {what} were kept until {lease.kept_until:%Y-%m-%d %H:%M} UTC and have been"
        " removed."
    )
