"""Model of a downtime: a time in which a site gets nothing new, and where it was imported from."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Downtime(models.Model):
    """A time in which a site gets nothing new; before it, a lead time without new DAGs."""

    site = models.ForeignKey("sites.Site", on_delete=models.CASCADE, related_name="downtimes")
    start = models.DateTimeField(help_text="From now on no pilot is sent either.")
    end = models.DateTimeField()
    lead_time_s = models.PositiveIntegerField(
        default=0, help_text="So long before the start the site takes no new DAG, in seconds."
    )
    reason = models.TextField()
    author = models.CharField(max_length=160)
    created_at = models.DateTimeField(db_default=Now())
    cancelled_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.CharField(max_length=160, blank=True)
    cancel_reason = models.TextField(blank=True, default="", db_default="")
    source = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Where it was imported from; empty: a person entered it.",
    )
    uid = models.CharField(max_length=255, blank=True, default="", db_default="", editable=False)
    recurrence = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Of a repeated event of the source: when this occurrence should have begun.",
    )
    sequence = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    imported = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Version of its terms as they were imported last.",
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["end"], condition=models.Q(cancelled_at=None), name="downtime_by_end"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "uid", "recurrence", "site"],
                condition=~models.Q(source=""),
                name="downtime_imported_once",
            ),
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")), name="downtime_ends_after_start"
            ),
            models.CheckConstraint(condition=~models.Q(reason=""), name="downtime_has_reason"),
        ]

    def __str__(self) -> str:
        return f"downtime of {self.site.name} from {self.start:%Y-%m-%d %H:%M}"
