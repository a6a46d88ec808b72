"""Model of the sets of attributes that checks have published on nodes of a queue of late."""

from __future__ import annotations

from django.db import models

from wms.sites.models import Queue


class SeenPublication(models.Model):
    """Set of values that pilots of a queue have published, and when one did so last."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="+")
    sha256 = models.CharField(max_length=64, help_text="Of the values in canonical form.")
    published = models.JSONField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "sha256"], name="seenpublication_once"),
        ]
        indexes = [
            models.Index(fields=["queue", "-seen_at"], name="seenpublication_latest"),
        ]

    def __str__(self) -> str:
        return f"published at queue {self.queue_id}: {self.published}"
