"""CPU efficiency of a cluster: CPU time by core-seconds, and mean wall time, of its first jobs."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F, Sum

from wms.jobs.clusters.states import TOPIC
from wms.jobs.models import Attempt, Cluster

#: Jobs that are looked at, from the first on: they are alike, and a sum over millions takes long.
MAX_JOBS_READ = 2_000


@dataclass(frozen=True, slots=True)
class ClusterEfficiency:
    """Times of the attempts that succeeded among the first jobs of a cluster.

    `core_s` is the wall time by the cores that were held.
    """

    attempts: int
    wall_s: float
    core_s: float
    cpu_s: float

    @property
    def part(self) -> float | None:
        """CPU time by core-seconds; None where nothing is known yet."""
        return self.cpu_s / self.core_s if self.core_s else None

    @property
    def mean_wall_s(self) -> float | None:
        """Wall time of an attempt; None without any."""
        return self.wall_s / self.attempts if self.attempts else None


def efficiency_of(cluster: Cluster) -> ClusterEfficiency:
    """Efficiency of the first jobs of a cluster. One query."""
    first = Attempt.objects.filter(
        job__cluster_id=cluster.pk,
        job__topic=TOPIC,
        job__process__lt=MAX_JOBS_READ,
        outcome=Attempt.Outcome.DONE,
        wall_s__isnull=False,
        cpu_s__isnull=False,
    )
    sums = first.aggregate(
        attempts=Count("pk"),
        wall=Sum("wall_s", default=0.0),
        core=Sum(F("wall_s") * F("cores"), default=0.0),
        cpu=Sum("cpu_s", default=0.0),
    )
    return ClusterEfficiency(sums["attempts"], sums["wall"], sums["core"], sums["cpu"])
