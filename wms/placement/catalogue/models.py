"""Models of the catalogue: a logical file with its size and checksums, and its replicas."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class LogicalFile(models.Model):
    """A content under a name, which is the same at whatever storage it lies."""

    name = models.CharField(max_length=1000, unique=True, help_text="A path.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="logical_files"
    )
    owner_group = models.CharField(
        max_length=64, blank=True, help_text="In whose name it was placed."
    )
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    md5 = models.CharField(max_length=32, blank=True, help_text="If a request told it.")
    adler32 = models.CharField(max_length=8, blank=True, help_text="If a request told it.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"lfn:{self.name}"


class Replica(models.Model):
    """A logical file at a storage: below its endpoints, under the logical name."""

    file = models.ForeignKey(LogicalFile, on_delete=models.CASCADE, related_name="replicas")
    storage = models.ForeignKey(
        "placement.Storage", on_delete=models.PROTECT, related_name="replicas"
    )
    request = models.ForeignKey(
        "placement.PlacementRequest",
        null=True,
        on_delete=models.SET_NULL,
        related_name="replicas",
        help_text="Which placed it.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["file", "storage"], name="replica_once_at_a_storage"),
        ]

    def __str__(self) -> str:
        return f"{self.file} at {self.storage}"
