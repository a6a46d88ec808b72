"""Model of suspected worker nodes, which fail jobs that others of their site run well.

A row has the failures, the trials given to the node, and how the suspicion ended.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from wms.sites.models import Site


class SuspectedNode(models.Model):
    """A worker node that is, or was, suspected of failing jobs by itself.

    While it is, its pilots get single jobs as trials, and none that has failed elsewhere. What ran
    before its end counts no more against it. See `wms.pilots.monitoring.suspects`.
    """

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="suspected_nodes")
    host = models.CharField(max_length=255)
    since = models.DateTimeField()
    failed = models.PositiveIntegerField(help_text="Payloads that failed there lately.")
    tried = models.PositiveIntegerField(help_text="Payloads that ran there lately.")
    others_failed = models.PositiveIntegerField(
        help_text="Payloads of the same batches that failed on other nodes of the site."
    )
    others_tried = models.PositiveIntegerField()
    failed_jobs = ArrayField(models.BigIntegerField(), help_text="The latest jobs that failed.")
    reason = models.TextField(help_text="Why the latest of these failed.")
    trials = ArrayField(
        models.BigIntegerField(),
        default=list,
        db_default=models.Value([]),
        help_text="Attempts that were given to it as trials.",
    )
    next_trial_at = models.DateTimeField(help_text="It gets no job before.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=160, blank=True, db_default="")
    end_reason = models.TextField(blank=True, db_default="")

    class Meta:
        constraints = [
            # Looked at by every claim: few rows, and those of nodes that are suspected now.
            models.UniqueConstraint(
                fields=["site", "host"], condition=Q(ended_at=None), name="node_suspected_once"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None) | ~Q(end_reason=""), name="suspicion_end_has_reason"
            ),
        ]
        indexes = [models.Index(fields=["site", "host", "ended_at"], name="suspected_by_host")]

    def __str__(self) -> str:
        return f"{self.host} of {self.site_id}"
