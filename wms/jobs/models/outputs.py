"""Models of the kept outputs of clusters: their lease (until when), and entries of their bytes."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from wms.jobs.models.clusters import Cluster


class OutputLease(models.Model):
    """The time until which the outputs of a cluster are kept; begins when all of it has ended.

    After it they are removed in the order of their jobs: `removed_before` tells how far that is.
    """

    cluster = models.OneToOneField(
        Cluster, primary_key=True, on_delete=models.CASCADE, related_name="output_lease"
    )
    began_at = models.DateTimeField(db_default=Now())
    kept_until = models.DateTimeField()
    removal_began_at = models.DateTimeField(null=True, blank=True)
    removed_before = models.BigIntegerField(
        default=0, db_default=0, help_text="Jobs before this process have none any more."
    )
    removed_files = models.BigIntegerField(default=0, db_default=0)
    removed_bytes = models.BigIntegerField(default=0, db_default=0)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # What the sweeper looks at.
            models.Index(
                fields=["kept_until"], condition=Q(removed_at__isnull=True), name="lease_not_over"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(removed_at__isnull=True) | Q(removal_began_at__isnull=False),
                name="lease_removed_has_begun",
            ),
        ]

    def __str__(self) -> str:
        return f"outputs of cluster {self.pk}"


class OutputBytes(models.Model):
    """An entry in the size of the outputs of a cluster's jobs; the sum counts.

    Whoever adds or removes files adds an entry, so that nobody waits for others. The entries are
    taken into the one of their cluster that `is_sum` (`wms.jobs.sandboxes.sizes`).
    """

    # Its check would lock the cluster's row, which the materialiser has, for each file.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    size_bytes = models.BigIntegerField(help_text="What came; negative: went.")
    is_sum = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = [
            models.Index(fields=["id"], condition=Q(is_sum=False), name="output_bytes_to_add"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"], condition=Q(is_sum=True), name="output_bytes_one_sum"
            ),
        ]

    def __str__(self) -> str:
        return f"cluster {self.cluster_id}: {self.size_bytes:+} bytes"
