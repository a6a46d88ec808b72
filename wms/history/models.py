"""Models of round-robin archives: a series, and its bins.

The number of bins is fixed: the oldest one is overwritten.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Series(models.Model):
    """One quantity, for example `jobs.waiting`, or `pilots.running@SITE` of one site."""

    name = models.CharField(max_length=128, unique=True)

    class Meta:
        verbose_name_plural = "series"

    def __str__(self) -> str:
        return self.name


class Bin(models.Model):
    """One slot in the ring of a series and an archive; overwritten when its time comes again.

    What `count` and `total` are depends on the series. Of a level that is sampled: the samples, and
    their sum. Of things that are counted: the minutes in which there were any, and how many there
    were. Of a spread: how many values, and their sum; `counts` has how many in each class.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="bins")
    archive = models.PositiveSmallIntegerField(help_text="Index into the list of archives.")
    slot = models.PositiveIntegerField()
    start = models.DateTimeField()
    count = models.PositiveIntegerField()
    total = models.FloatField()
    minimum = models.FloatField()
    maximum = models.FloatField()
    last = models.FloatField()
    last_at = models.DateTimeField(null=True, help_text="When `last` was sampled.")
    counts = ArrayField(models.PositiveIntegerField(), null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "archive", "slot"], name="bin_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id}/{self.archive}/{self.slot}"
