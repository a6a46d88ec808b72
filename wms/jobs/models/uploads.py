"""Model of uploads that resume: one file of one user, sent piece by piece before it is used."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from wms.jobs.models.contents import Blob


class ResumableUpload(models.Model):
    """A file that its owner sends piece by piece; whole, it is a content that submissions take.

    The row says which bytes count, and is locked while a piece is added (`wms.jobs.uploads`).
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    sha256 = models.CharField(max_length=64, help_text="SHA-256 that the whole content must have.")
    size_bytes = models.BigIntegerField(help_text="Size of the whole content.")
    received_bytes = models.BigIntegerField(
        default=0, db_default=0, help_text="Bytes that are here and count."
    )
    counted_bytes = models.BigIntegerField(
        help_text="Bytes that quotas count for it; none once they count where it was used."
    )
    blob = models.ForeignKey(
        Blob,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The content, when it is whole and has its SHA-256.",
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="It is forgotten then, unless a piece comes.")

    class Meta:
        indexes = [
            models.Index(fields=["expires_at"], name="upload_by_expiry"),
            # Also what finds those of an owner.
            models.Index(fields=["owner", "sha256"], name="upload_by_content"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(received_bytes__gte=0, received_bytes__lte=F("size_bytes")),
                name="upload_within_its_size",
            ),
            models.CheckConstraint(
                condition=Q(blob__isnull=True) | Q(received_bytes=F("size_bytes")),
                name="upload_stored_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"upload {self.pk}"
