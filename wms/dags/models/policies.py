"""Models of the matchmaking policy (one row) and of the records of negotiation cycles.

The policy is on rematches of DAGs, and on the half-life of submitters' priorities.
"""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models


class MatchmakingPolicy(models.Model):
    """Settings of operators for all DAGs: one row."""

    rematch_expression = models.TextField(
        blank=True,
        help_text="ClassAd expression over a running DAG's figures; when true, its match is taken "
        "back. For DAGs without their own.",
    )
    max_rematches = models.PositiveSmallIntegerField(
        default=5, help_text="After so many rematches by policy a DAG is held instead."
    )
    avoid_s = models.PositiveIntegerField(
        default=3600, help_text="So long a DAG does not go back to a site that it was taken from."
    )
    priority_half_life_s = models.PositiveIntegerField(
        default=86_400,
        validators=[MinValueValidator(60)],
        help_text="After this time used slots count half in a submitter's priority, and in the "
        "correction of shares of TaskQueues.",
    )

    class Meta:
        verbose_name_plural = "matchmaking policy"
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="one_matchmaking_policy"),
        ]

    def __str__(self) -> str:
        return "matchmaking policy"


class NegotiationCycle(models.Model):
    """Record of one negotiation cycle: its results, and the duration of its phases."""

    started_at = models.DateTimeField(db_index=True)
    publish_s = models.FloatField()
    read_s = models.FloatField()
    decide_s = models.FloatField()
    carry_out_s = models.FloatField()
    ads = models.PositiveIntegerField()
    requests = models.PositiveIntegerField()
    autoclusters = models.PositiveIntegerField()
    matches = models.PositiveIntegerField()
    bound = models.PositiveIntegerField()
    reasons = models.JSONField(default=dict, help_text="DAGs left over, by the kind of reason.")
    left_over = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="The most frequent reasons in full, with some of their DAGs; kept for a day.",
    )

    def __str__(self) -> str:
        return f"negotiation of {self.started_at:%Y-%m-%d %H:%M:%S}"

    @property
    def duration_s(self) -> float:
        """Duration of all phases."""
        return self.publish_s + self.read_s + self.decide_s + self.carry_out_s

    @property
    def unmatched(self) -> int:
        """Number of DAGs that stayed unmatched."""
        return sum(self.reasons.values())
