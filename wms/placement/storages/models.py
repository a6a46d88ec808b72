"""Model of a storage: its endpoints, the sites that it is near, its space and its limits."""

from __future__ import annotations

from typing import Final

from django.core.validators import MaxLengthValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now

#: Most characters of an expression: each request that chooses is compared with it.
MAX_REQUIREMENTS: Final = 2000

_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)


class Storage(models.Model):
    """A place where files lie, reached by one or several endpoints."""

    name = models.CharField(max_length=64, unique=True, validators=[_NAME])
    endpoints = models.TextField(
        help_text="One prefix of addresses a line, such as davs://storage.example.org/data/: what "
        "is below it is in the storage. The first one that can do what is asked for is used."
    )
    sites = models.ManyToManyField(
        "sites.Site", blank=True, related_name="storages", help_text="Sites that it is near."
    )
    space_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="So much may be allocated, such as 200 TB; empty: nothing.",
    )
    max_transfers = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Most transfers from and to it at once; empty: as many as there are places.",
    )
    max_link_transfers = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Most transfers at once from it to any one other storage, and back; what is in "
        "no storage counts as one. Empty: no limit.",
    )
    transfer_requirements = models.TextField(
        blank=True,
        default="",
        db_default="",
        validators=[MaxLengthValidator(MAX_REQUIREMENTS)],
        help_text="Which transfers may choose it where they leave the storage open, as a ClassAd "
        "expression in which TARGET is the request. Empty: all.",
    )
    is_enabled = models.BooleanField(
        default=True,
        help_text="Of one that is off no transfer begins; those that wait for it go on waiting.",
    )
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(space_bytes__gt=0) | models.Q(space_bytes=None),
                name="storage_space_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(max_transfers__gt=0) | models.Q(max_transfers=None),
                name="storage_max_transfers_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(max_link_transfers__gt=0) | models.Q(max_link_transfers=None),
                name="storage_max_link_transfers_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name
