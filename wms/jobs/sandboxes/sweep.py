"""Control loop that removes outputs whose lease is over, and contents that nothing refers to.

First the rows of the files go, then their contents. Also folds the sizes of outputs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from wms.core.actors import Actor
from wms.jobs.clusters import lifecycle
from wms.jobs.clusters.states import TOPIC
from wms.jobs.content import unnamed_contents
from wms.jobs.models import AttemptFile, Job, OutputLease
from wms.jobs.sandboxes.files import KEPT_KINDS
from wms.jobs.sandboxes.sizes import fold_bytes, note_bytes

SWEEPER = Actor.system("sandbox-sweeper")
#: Jobs whose files go in one transaction.
_JOBS_AT_ONCE = 1000
#: After so long a turn ends; the next goes on.
_TURN_S = 15.0


def run_cycle(now: datetime, *, last: Mapping[str, Any]) -> dict[str, Any]:
    """Remove outputs that are over and contents that nothing names, a portion of each.

    `last` is the report of the cycle before: it tells where the walks over contents go on.
    """
    until_s = time.monotonic() + _TURN_S
    files = size_bytes = 0
    while time.monotonic() < until_s and (removed := remove_next(now)) is not None:
        files, size_bytes = files + removed[0], size_bytes + removed[1]
    while time.monotonic() < until_s and fold_bytes():
        pass
    folder = int(last.get("folder", 0))
    after, marked = unnamed_contents.mark_next(now=now, after=str(last.get("after", "")))
    strays = unnamed_contents.mark_strays(now=now, folder=folder)
    deleted, freed_bytes = _delete_contents(now, until_s)
    return {
        "files": files,
        "bytes": size_bytes,
        "marked": marked + strays,
        "contents": deleted,
        "freed_bytes": freed_bytes,
        "after": after,
        "folder": (folder + 1) % unnamed_contents.FOLDERS,
    }


@transaction.atomic
def remove_next(now: datetime) -> tuple[int, int] | None:
    """Remove the files of the next jobs whose outputs are over; their number and bytes.

    None when there is nothing to remove.
    """
    over = OutputLease.objects.filter(kept_until__lt=now, removed_at=None).order_by("kept_until")
    # With its cluster, which everybody locks before the lease, and which an event of it locks.
    locked = over.select_related("cluster").select_for_update(
        of=("self", "cluster"), skip_locked=True
    )
    lease = locked.first()
    if lease is None:
        return None
    jobs = list(_jobs_left(lease).values_list("pk", "process")[:_JOBS_AT_ONCE])
    files, size_bytes = _remove_files([pk for pk, _ in jobs], now)
    note_bytes(lease.pk, -size_bytes)
    lease.removal_began_at = lease.removal_began_at or now
    lease.removed_files += files
    lease.removed_bytes += size_bytes
    if jobs:
        lease.removed_before = jobs[-1][1] + 1
    if len(jobs) < _JOBS_AT_ONCE:
        lease.removed_at = now
        facts = {"files": lease.removed_files, "bytes": lease.removed_bytes}
        lifecycle.note("remove_outputs", {lease.pk: facts}, actor=SWEEPER)
    lease.save()
    return files, size_bytes


def _jobs_left(lease: OutputLease) -> QuerySet[Job]:
    """Jobs whose files are still there, in their order; by `job_of_cluster_once`."""
    # The topic is a condition of that index: without it, all jobs of the cluster are sorted.
    jobs = Job.objects.filter(topic=TOPIC, cluster_id=lease.pk)
    return jobs.filter(process__gte=lease.removed_before).order_by("process")


def _remove_files(job_ids: list[int], now: datetime) -> tuple[int, int]:
    """Remove what all attempts of these jobs have sent; contents that nothing names now get marks.

    The jobs have ended, so nothing is sent for them any more.
    """
    found = AttemptFile.objects.filter(attempt__job__in=job_ids)
    files = list(found.values_list("pk", "kind", "blob_id", "blob__size_bytes"))
    AttemptFile.objects.filter(pk__in=[file[0] for file in files]).delete()
    unnamed_contents.mark_unnamed({sha256 for _, _, sha256, _ in files}, now=now)
    sizes = [size for _, kind, _, size in files if kind in KEPT_KINDS]
    return len(sizes), sum(sizes)


def _delete_contents(now: datetime, until_s: float) -> tuple[int, int]:
    number = freed_bytes = 0
    while True:
        deleted, size_bytes = unnamed_contents.delete_unnamed(now=now)
        number, freed_bytes = number + deleted, freed_bytes + size_bytes
        if not deleted or time.monotonic() > until_s:
            return number, freed_bytes
