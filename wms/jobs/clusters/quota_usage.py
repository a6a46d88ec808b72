"""Use of quotas by clusters: those that have not ended, and their jobs still to be made."""

from __future__ import annotations

from django.db.models import Count, F, Sum

from wms.jobs.clusters.states import CLUSTER_ALIVE
from wms.jobs.models import Cluster
from wms.jobs.quotas import Holder, Usage


def usage_by_clusters(holder: Holder) -> Usage:
    """What the clusters of a user or group use beside their waiting jobs and files.

    One query over the clusters that have not ended; no job is read.
    """
    theirs = holder.rows(group="accounting_group__name")
    sums = Cluster.objects.filter(theirs, state__in=CLUSTER_ALIVE).aggregate(
        to_come=Sum(F("size") - F("next_process")), clusters=Count("pk")
    )
    return Usage(waiting_jobs=sums["to_come"] or 0, clusters=sums["clusters"])
