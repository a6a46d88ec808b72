"""Cluster page: progress, matrix of states, causes of failure, efficiency, actions, events.

Also the address of the list of its jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from portal.web.shared.action_forms import Offer, Refused, offers_of
from portal.web.shared.pages import render_page
from wms.actions.cluster_outputs import PROLONG_OUTPUTS
from wms.actions.clusters import CLUSTERS
from wms.jobs.clusters.efficiency import efficiency_of
from wms.jobs.clusters.selectors import (
    ClusterProgress,
    events_of_cluster,
    failure_causes,
    faults_of,
    find_cluster,
    progress_of,
    reruns_of,
)
from wms.jobs.clusters.states import CLUSTER_TERMINAL
from wms.jobs.clusters.submit import submission_warnings
from wms.jobs.content.blobs import read_head
from wms.jobs.models import Cluster, OutputLease
from wms.jobs.sandboxes.leases import lease_of
from wms.jobs.states import JobCause, JobState

_EVENTS_SHOWN = 100
_FAULTS_SHOWN = 20
_DESCRIPTION_BYTES = 16 * 1024
_LABELS = {
    "priority": "Priority", "memory_mb": "Memory in MB", "sites": "Sites",
    "banned_sites": "Banned sites",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """Jobs in a state, and the list of them; without a list for rows that are no jobs."""

    state: str
    count: int
    address: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of failures, with how often it is found and the list of those jobs."""

    label: str
    count: int
    address: str


def show_cluster(
    request: HttpRequest, cluster_id: int, *, refused: Refused | None = None
) -> HttpResponse:
    """Cluster page; the form of a refused action is open and shows the reason."""
    cluster = find_cluster(request.user, cluster_id)
    error = refused.error if refused else None
    progress = progress_of(cluster)
    events = list(events_of_cluster(cluster)[: _EVENTS_SHOWN + 1])
    lease = lease_of(cluster.pk) if cluster.state in CLUSTER_TERMINAL else None
    offers = _offers(request, cluster, lease, refused)
    faults = list(faults_of(cluster)[: _FAULTS_SHOWN + 1]) if cluster.faulty_count else []
    context = {
        "cluster": cluster,
        "progress": progress,
        "cells": _cells(cluster, progress),
        "causes": _causes(cluster) if cluster.failed_count else [],
        "efficiency": efficiency_of(cluster),
        "faults": faults[:_FAULTS_SHOWN],
        "faults_cut": len(faults) > _FAULTS_SHOWN,
        "warnings": submission_warnings(cluster),
        "changed": _changed(cluster),
        "reruns": reruns_of(cluster),
        "description": read_head(cluster.description_id, limit_bytes=_DESCRIPTION_BYTES),
        "description_cut": cluster.description.size_bytes > _DESCRIPTION_BYTES,
        "lease": lease,
        "offers": offers,
        # What is no longer offered has no form that could tell it.
        "error": error if not any(offer.error for offer in offers) else None,
        "events": events[:_EVENTS_SHOWN],
        "events_cut": len(events) > _EVENTS_SHOWN,
    }
    return render_page(request, "cluster", context, status=error.status if error else 200)


def _offers(
    request: HttpRequest, cluster: Cluster, lease: OutputLease | None, refused: Refused | None
) -> list[Offer]:
    possible = CLUSTERS.possible_on_page(request.user, cluster)
    if lease is not None and lease.removal_began_at is not None:
        possible = [action for action in possible if action is not PROLONG_OUTPUTS]
    return offers_of(
        possible,
        cluster.state,
        lambda name: reverse("web:steer-cluster", args=[cluster.pk, name]),
        refused=refused,
    )


def jobs_address(cluster: Cluster, **filters: Any) -> str:
    """Address of the list of the cluster's jobs that pass these filters."""
    return f"{reverse('web:jobs')}?{urlencode({'cluster': cluster.pk, **filters})}"


def _cells(cluster: Cluster, progress: ClusterProgress) -> Sequence[Cell]:
    ended = {"done": progress.done, "failed": progress.failed, "killed": progress.killed}
    counts = {**dict.fromkeys(JobState.values, 0), **progress.live, **ended}
    cells = [Cell(state, n, jobs_address(cluster, state=state)) for state, n in counts.items()]
    rows = {
        "not_yet_made": progress.not_yet_made,
        "never_made": progress.never_made,
        "faulty": progress.faulty,
        "ending": progress.ending,
    }
    return cells + [Cell(name, count, "") for name, count in rows.items() if count]


def _changed(cluster: Cluster) -> Sequence[tuple[str, str]]:
    """Changes for all jobs of the cluster, with labels."""
    return [
        (
            _LABELS.get(name, name),
            ", ".join(value) or "no condition" if isinstance(value, list) else str(value),
        )
        for name, value in cluster.overrides.items()
    ]


def _causes(cluster: Cluster) -> Sequence[Cause]:
    labels = dict(JobCause.choices)
    return [
        Cause(
            labels.get(cause, cause) or "not told",
            count,
            jobs_address(cluster, state="failed", **({"cause": cause} if cause else {})),
        )
        for cause, count in failure_causes(cluster).items()
    ]
