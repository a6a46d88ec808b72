"""Model of running limits: most jobs of a kind at once, and least interval between their starts."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from matching.task_queues.resources import JobKind
from wms.sites.models import Site


class RunningLimit(models.Model):
    """The most jobs of a kind that run at once, and the least interval between their starts.

    An empty site, job type or group stands for any: without a site the limit is over all sites
    together. The claim keeps it exactly; see `wms.jobs.limits`.
    """

    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.CASCADE, related_name="running_limits"
    )
    job_type = models.CharField(max_length=64, blank=True)
    owner_group = models.CharField(max_length=64, blank=True)
    maximum = models.PositiveIntegerField(
        null=True, blank=True, help_text="Jobs with a pilot at once: matched, running or stalled."
    )
    min_interval_s = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(86_400.0)],
        help_text="Seconds between two matches.",
    )
    last_match_at = models.DateTimeField(null=True, editable=False)
    note = models.CharField(max_length=200, blank=True, help_text="What it protects.")

    class Meta:
        ordering = ["site__name", "job_type", "owner_group"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "job_type", "owner_group"],
                name="running_limit_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=models.Q(maximum__isnull=False) | models.Q(min_interval_s__isnull=False),
                name="running_limit_limits",
            ),
        ]

    def __str__(self) -> str:
        kind = JobKind(self.job_type, self.owner_group)
        return f"{kind} at {self.site.name if self.site else 'all sites together'}"
