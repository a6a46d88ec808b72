"""Model of the last test of the connection to a queue's batch system, asked for by a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import models
from django.db.models import Q
from django.utils import timezone

from wms.sites.models import Queue

#: Time of the task that asks; a test without an end after twice as long was lost, with its worker
#: or before one took it.
LIMIT_S: Final = 50
LOST_AFTER: Final = timedelta(seconds=2 * LIMIT_S)


class ConnectionTest(models.Model):
    """Last test of a queue's connection: asked for, then ended with an outcome.

    The numbers of places are those of the batch system's answer.
    """

    class Outcome(models.TextChoices):
        """Outcome of a test, by its cause; empty while none is known."""

        WAITING = "", "not asked yet"
        ANSWERED = "answered", "it answers"
        SETTINGS = "settings", "the queue's settings are wrong"
        LOGIN = "login", "its login cannot be used"
        UNREACHABLE = "unreachable", "no answer came"
        REFUSED = "refused", "it refused"
        TIMEOUT = "timeout", "it did not answer in time"
        FAULT = "fault", "the adapter failed"

    queue = models.OneToOneField(
        Queue, on_delete=models.CASCADE, primary_key=True, related_name="connection_test"
    )
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=150)
    outcome = models.CharField(
        max_length=16, choices=Outcome, blank=True, default="", db_default=""
    )
    detail = models.TextField(blank=True, default="", db_default="")
    ended_at = models.DateTimeField(null=True)
    took_s = models.FloatField(null=True)
    total = models.IntegerField(null=True, help_text="Places for pilots.")
    free = models.IntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="", ended_at=None)
                | (~Q(outcome="") & Q(ended_at__isnull=False)),
                name="connection_test_ends_with_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"connection of queue {self.queue_id}: {self.get_outcome_display()}"

    @property
    def is_good(self) -> bool:
        """Whether the batch system answered."""
        return self.outcome == self.Outcome.ANSWERED

    @property
    def is_lost(self) -> bool:
        """Whether no end of it is to be expected any more."""
        return self.ended_at is None and timezone.now() - self.asked_at >= LOST_AFTER
