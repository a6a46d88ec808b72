"""Model of an entry: a queue at which a frontend has pilots, with share and limits there."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from wms.accounting.models import Frontend
from wms.sites.models import Queue


class FrontendEntry(models.Model):
    """Entry of a frontend at a queue. Without a frontend it is the default frontend's.

    The default frontend has pilots at every queue, with a share of 1, where no entry says
    otherwise; any other one only where it has an entry.
    """

    frontend = models.ForeignKey(
        Frontend,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="entries",
        help_text="Whose pilots are sent here; empty: those of the default frontend.",
    )
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="frontend_entries")
    share = models.FloatField(
        default=1.0,
        db_default=1.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1e6)],
        help_text="Its part of the queue's pilots relative to other frontends whose jobs wait for "
        "it; 0: none. What others do not need is used.",
    )
    max_pilots = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Its pilots here, at most; empty: as many as the queue has.",
    )
    max_queued_pilots = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Its waiting pilots here, at most; empty: as many as the queue lets wait.",
    )

    start_expression = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="ClassAd expression beside the frontend's own: for which jobs (TARGET) it has "
        "pilots here (MY). Empty: for all that the frontend's allows.",
    )

    class Meta:
        verbose_name_plural = "frontend entries"
        ordering = ["queue__site__name", "queue__name", "frontend__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "frontend"],
                nulls_distinct=False,
                name="one_entry_of_a_frontend_at_a_queue",
            ),
            models.CheckConstraint(
                condition=models.Q(share__gte=0), name="frontend_entry_share_positive"
            ),
        ]

    def __str__(self) -> str:
        whose = self.frontend.name if self.frontend else "the default frontend"
        return f"{whose} at {self.queue}"
