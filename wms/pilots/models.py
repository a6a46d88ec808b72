"""Pilots: programs sent to sites' batch systems, which pull jobs and run them."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup
from wms.core.models import EventRecord
from wms.pilots.states import PilotState
from wms.sites.models import Queue


class Pilot(models.Model):
    """One pilot, from the row that is written before its submission to its end."""

    uuid = models.UUIDField(unique=True, default=uuid.uuid4)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="pilots")
    state = models.CharField(max_length=16, choices=PilotState, default=PilotState.SUBMITTED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    batch = models.CharField(
        max_length=64,
        db_index=True,
        help_text="Name of the batch job that the pilot was submitted in.",
    )
    native_id = models.CharField(max_length=128, blank=True, help_text="The batch system's own id.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="A private pilot's; it keeps the identity that it was submitted with.",
    )
    owner_group = models.ForeignKey(
        AccountingGroup, null=True, on_delete=models.PROTECT, related_name="+"
    )
    secret_sha256 = models.CharField(
        max_length=64, help_text="One-time secret for the registration."
    )
    token_sha256 = models.CharField(max_length=64, blank=True, help_text="Chosen by the pilot.")
    node = models.JSONField(default=dict, help_text="What the pilot reported of its node.")
    missing_polls = models.PositiveSmallIntegerField(
        default=0, help_text="Answers of the batch system, one after another, that did not know it."
    )
    is_forgotten = models.BooleanField(
        default=False, help_text="The batch system keeps nothing of it any more."
    )
    created_at = models.DateTimeField(db_default=Now())
    registered_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    fruitless_at = models.DateTimeField(
        null=True, help_text="When it was told last that there is no job for it."
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["queue", "state"], name="pilot_by_queue_and_state"),
            models.Index(
                fields=["queue", "ended_at"],
                condition=models.Q(is_forgotten=False, ended_at__isnull=False),
                name="pilot_to_be_forgotten",
            ),
            models.Index(
                fields=["ended_at"],
                condition=models.Q(ended_at__isnull=False),
                name="pilot_by_end",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=PilotState.values), name="pilot_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["running", "stalled", "done"])
                | ~models.Q(token_sha256=""),
                name="pilot_running_is_registered",
            ),
        ]

    def __str__(self) -> str:
        return f"pilot {self.uuid}"


class PilotEvent(EventRecord):
    """One change of a pilot."""

    pilot = models.ForeignKey(Pilot, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["pilot", "id"], name="pilotevent_by_pilot")]

    def __str__(self) -> str:
        return f"pilot {self.pilot_id}: {self.event}"
