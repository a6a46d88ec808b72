"""Models of placement requests, their attempts and their events."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from wms.core.models import EventRecord
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models import Workspace
from wms.placement.states import RequestState


class PlacementRequest(models.Model):
    """A transfer of a file from one place to another, tried until it succeeds, within a limit.

    Attempt k uses pair k of the primary schemes and the alternatives, and again from the first.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="placement_requests"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="placement_requests"
    )
    directory = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        help_text="Where in the workspace relative names begin.",
    )
    source_url = models.TextField()
    destination_url = models.TextField()
    arguments = models.TextField(blank=True, help_text="For the module.")
    alternatives = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        help_text="Further pairs of schemes, such as http-file.",
    )
    expected_sha256 = models.CharField(max_length=64, blank=True)
    expected_bytes = models.BigIntegerField(null=True)
    attributes = models.JSONField(default=dict, help_text="The whole ad: expressions by name.")
    state = models.CharField(max_length=16, choices=RequestState, default=RequestState.RECEIVED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    max_attempts = models.PositiveSmallIntegerField(default=10)
    attempt_number = models.PositiveSmallIntegerField(
        default=0, help_text="How many attempts have begun."
    )
    due_at = models.DateTimeField(null=True, help_text="The next attempt not before this time.")
    topic = models.CharField(
        max_length=16, blank=True, help_text="Which inbox hears of the request's end."
    )
    topic_key = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["topic", "topic_key"], name="placement_by_topic"),
            # What the service looks at.
            models.Index(
                fields=["state", "id"],
                condition=models.Q(state__in=["received", "processing", "rescheduled"]),
                name="placement_not_ended",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=RequestState.values), name="placement_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["processing", "completed"])
                | models.Q(attempt_number__gte=1),
                name="placement_under_way_has_attempt",
            ),
            models.CheckConstraint(
                condition=models.Q(attempt_number__lte=models.F("max_attempts")),
                name="placement_attempts_limited",
            ),
        ]

    def __str__(self) -> str:
        return f"placement request {self.pk}"


class PlacementAttempt(models.Model):
    """One try of a request, with one pair of schemes; open while it has no exit code."""

    request = models.ForeignKey(PlacementRequest, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField(help_text="From 1.")
    source_scheme = models.CharField(max_length=32)
    destination_scheme = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    lease = models.CharField(max_length=64, blank=True, help_text="Of the service that runs it.")
    lease_until = models.DateTimeField(null=True)
    exit_code = models.IntegerField(
        null=True, help_text="0 for a success, 111 without a module for the pair of schemes."
    )
    message = models.TextField(blank=True)
    size_bytes = models.BigIntegerField(null=True, help_text="Of the file, once it is there.")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "number"], name="placement_attempt_number_unique"
            ),
            models.UniqueConstraint(
                fields=["request"],
                condition=models.Q(exit_code=None),
                name="placement_has_one_open_attempt",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_until"],
                condition=models.Q(exit_code=None),
                name="placement_attempt_open",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of placement request {self.request_id}"


class PlacementEvent(EventRecord):
    """One change of a placement request."""

    request = models.ForeignKey(PlacementRequest, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["request", "id"], name="placementevent_by_request")]

    def __str__(self) -> str:
        return f"placement request {self.request_id}: {self.event}"
