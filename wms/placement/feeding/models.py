"""Model of the feeder: whether its next run may begin, the lease of the one under way, the last."""

from __future__ import annotations

from typing import Final

from django.db import models

#: The key of the one row.
THE_ONE: Final = 1


class Feeder(models.Model):
    """State of the program that feeds the queue: one row, for all workers of the installation."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ONE)
    is_armed = models.BooleanField(
        default=True, help_text="The next run begins as soon as the queue is low."
    )
    not_before = models.DateTimeField(
        null=True, help_text="When the next run may begin though it is not armed."
    )
    lease = models.CharField(max_length=64, blank=True, help_text="Of the worker that runs it.")
    lease_until = models.DateTimeField(null=True)
    runs = models.PositiveBigIntegerField(default=0, help_text="How many have begun.")
    failures = models.PositiveIntegerField(default=0, help_text="How many failed in a row of late.")
    active = models.PositiveIntegerField(
        null=True, help_text="Requests that waited or ran when the last run began."
    )
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, help_text="Empty while it runs.")
    exit_code = models.IntegerField(null=True)
    failure = models.TextField(blank=True, help_text="Why it was not started or was stopped.")
    output = models.TextField(blank=True, help_text="The last lines that it said.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=THE_ONE), name="feeder_is_one"),
            models.CheckConstraint(
                condition=models.Q(lease="", lease_until=None)
                | models.Q(~models.Q(lease=""), lease_until__isnull=False, ended_at=None),
                name="feeder_lease_has_end",
            ),
        ]

    def __str__(self) -> str:
        return "feeder of placements"
