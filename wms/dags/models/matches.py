"""Models of the stays of DAGs at sites, and of jobs that finish at a site which was left."""

from __future__ import annotations

from django.db import models

from wms.dags.models.dags import Dag
from wms.sites.models import Site


class MatchRecord(models.Model):
    """One stay of a DAG at a site, from the match to its end; open while `ended_at` is empty."""

    class End(models.TextChoices):
        """Kind of end of a stay."""

        COMPLETE = "complete", "completed"
        FAIL = "fail", "failed"
        REMOVE = "remove", "removed"
        HOLD = "hold", "held before it began"
        UNFIT = "unfit", "no queue could run it"
        REMATCH = "rematch", "rematched by hand"
        POLICY = "policy", "rematched by policy"

    dag = models.ForeignKey(Dag, on_delete=models.CASCADE, related_name="matches")
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="matches")
    matched_at = models.DateTimeField()
    dag_rank = models.FloatField(default=0.0)
    site_rank = models.FloatField(default=0.0)
    ended_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(max_length=32, choices=End, blank=True)
    reason = models.TextField(blank=True)
    avoided_until = models.DateTimeField(
        null=True, blank=True, help_text="The DAG does not come back before this time."
    )

    class Meta:
        indexes = [
            models.Index(fields=["dag", "-matched_at"], name="match_by_dag"),
            models.Index(fields=["matched_at"], name="match_by_time"),
            models.Index(fields=["site", "ended_at"], name="match_by_site_and_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["dag"], condition=models.Q(ended_at=None), name="dag_has_one_open_match"
            ),
        ]

    def __str__(self) -> str:
        return f"DAG {self.dag_id} at site {self.site_id}"


class LeftCluster(models.Model):
    """Jobs of a node that may finish at a site which their DAG has left.

    It counts while the node still waits for these jobs; `wms.dags.negotiation.bound` tells how.
    """

    id = models.BigIntegerField(primary_key=True, help_text="The first job, as in the node.")
    node = models.ForeignKey(
        "dags.Node", on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    dag = models.ForeignKey(
        Dag, on_delete=models.CASCADE, related_name="left_clusters", help_text="The outermost one."
    )
    site = models.ForeignKey(
        Site,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The site that was left; none if each job is bound at its claim.",
    )

    def __str__(self) -> str:
        return f"jobs of node {self.node_id} at site {self.site_id}"
