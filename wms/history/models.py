"""Round-robin archives: a fixed number of bins for each series, for ever."""

from __future__ import annotations

from django.db import models


class Series(models.Model):
    """One quantity that is sampled, for example `jobs.waiting`."""

    name = models.CharField(max_length=128, unique=True)

    class Meta:
        verbose_name_plural = "series"

    def __str__(self) -> str:
        return self.name


class Bin(models.Model):
    """One place of the ring of a series and an archive; overwritten when its time comes again."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="bins")
    archive = models.PositiveSmallIntegerField(help_text="Index into the list of archives.")
    slot = models.PositiveIntegerField()
    start = models.DateTimeField()
    count = models.PositiveIntegerField()
    total = models.FloatField()
    minimum = models.FloatField()
    maximum = models.FloatField()
    last = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "archive", "slot"], name="bin_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id}/{self.archive}/{self.slot}"
