"""Model of the deadline that somebody has set for a campaign; a campaign itself is a label."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from wms.core.labels import MAX_LABEL_LENGTH


class CampaignDeadline(models.Model):
    """Deadline of a campaign as one person has set it; empty: this person took it away.

    Of those set by people whom a user may see, the latest counts for this user: campaigns of two
    collaborations may have the same name, and neither learns of the other's.
    """

    campaign = models.CharField(max_length=MAX_LABEL_LENGTH)
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    deadline = models.DateTimeField(null=True)
    set_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "set_by"], name="campaign_deadline_unique"),
        ]

    def __str__(self) -> str:
        return f"deadline of campaign {self.campaign} by user {self.set_by_id}"
