"""Jobs and their events, as rows."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from wms.core.models import EventRecord
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models.contents import Workspace
from wms.jobs.states import JobCause, JobState


class Job(models.Model):
    """One payload to be run once with success, in as many attempts as it takes up to a limit."""

    name = models.CharField(max_length=255)
    # Its index is `job_by_owner`.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    # Checking it for each of thousands of new jobs costs as much as an index.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="jobs", db_constraint=False
    )
    state = models.CharField(max_length=16, choices=JobState, default=JobState.RECEIVED)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    state_cause = models.CharField(
        max_length=16,
        choices=JobCause,
        blank=True,
        default="",
        db_default="",
        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
    )
    executable = models.CharField(max_length=1024)
    arguments = ArrayField(models.TextField(), default=list)
    environment = models.JSONField(default=dict)
    # Without a length: to change that of an array writes the whole table anew.
    input_files = ArrayField(models.CharField(), default=list)
    output_files = ArrayField(models.CharField(), default=list)
    stdout_name = models.CharField(
        max_length=MAX_PATH_BYTES, blank=True, help_text="Name in the workspace."
    )
    stderr_name = models.CharField(
        max_length=MAX_PATH_BYTES, blank=True, help_text="Name in the workspace."
    )
    needs = models.JSONField()
    priority = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        help_text="From 0 to 10: how much more likely it is drawn than others of its TaskQueue.",
    )
    attributes = models.JSONField(default=dict, help_text="Other keys of the submit description.")
    wall_limit_s = models.PositiveIntegerField()
    max_attempts = models.PositiveSmallIntegerField(default=5)
    attempt_number = models.PositiveSmallIntegerField(
        default=0, help_text="The latest attempt; 0 before the first."
    )
    site_name = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Where the latest attempt is or was; empty before the first.",
    )
    topic = models.CharField(
        max_length=16, blank=True, help_text="Which inbox hears of the job's end."
    )
    topic_key = models.BigIntegerField(default=0)
    cluster_id = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="The first job of those that were submitted with it as one list; 0 if alone.",
    )
    process = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Its place in the cluster, from 0."
    )
    max_retries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="So often a payload that failed is run again."
    )
    payload_failures = models.PositiveSmallIntegerField(default=0, db_default=0)
    hold_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    periodic = models.JSONField(
        null=True,
        blank=True,
        help_text="Expressions by what they do: hold, release, remove, retry.",
    )
    request_disk_mb = models.PositiveIntegerField(default=0, db_default=0)
    directory = models.CharField(
        max_length=MAX_PATH_BYTES,
        blank=True,
        default="",
        db_default="",
        help_text="Where in the workspace its files have their names; not the executable.",
    )
    not_before = models.DateTimeField(
        null=True, help_text="A job that was rescheduled joins no TaskQueue before."
    )
    # Without a length of the names, for the same reason as above.
    avoided_hosts = ArrayField(
        models.CharField(),
        default=list,
        db_default=models.Value([]),
        blank=True,
        help_text="Worker nodes that have failed it, which it leaves to others for a while.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["state", "id"], name="job_by_state"),
            # What the loop of the rescheduled jobs looks at.
            models.Index(
                fields=["not_before"],
                condition=models.Q(state="received", not_before__isnull=False),
                name="job_rescheduled",
            ),
            models.Index(fields=["topic", "topic_key", "state"], name="job_by_topic"),
            models.Index(
                fields=["cluster_id", "process"],
                condition=~models.Q(cluster_id=0),
                name="job_by_cluster",
            ),
            # What the loop of the periodic expressions looks at.
            models.Index(
                fields=["id"],
                condition=models.Q(periodic__isnull=False)
                & ~models.Q(state__in=["done", "failed", "killed"]),
                name="job_with_periodic",
            ),
            # What the list of jobs is asked for: those of an owner or site, counted by state; those
            # of a time, and those that were tried again.
            models.Index(fields=["owner", "state", "id"], name="job_by_owner"),
            models.Index(
                fields=["site_name", "state", "id"],
                condition=~models.Q(site_name=""),
                name="job_by_site",
            ),
            models.Index(fields=["created_at"], name="job_by_time"),
            # The latest change, and the order of changes: of jobs in a state, or of each state.
            models.Index(fields=["state", "state_since", "id"], name="job_by_last_change"),
            # Names that begin so; whatever order the texts of the database have.
            models.Index(fields=["name"], name="job_by_name", opclasses=["varchar_pattern_ops"]),
            models.Index(
                fields=["state", "id"], condition=~models.Q(state_reason=""), name="job_with_reason"
            ),
            models.Index(
                fields=["attempt_number"],
                condition=models.Q(attempt_number__gt=1),
                name="job_tried_again",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=JobState.values), name="job_state_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["matched", "running", "stalled", "done"])
                | models.Q(attempt_number__gte=1),
                name="job_with_pilot_has_attempt",
            ),
            models.CheckConstraint(condition=models.Q(priority__lte=10), name="job_priority_known"),
            models.CheckConstraint(
                condition=~models.Q(state="held") | ~models.Q(state_reason=""),
                name="job_held_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"


class JobEvent(EventRecord):
    """One change of a job."""

    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="events", db_constraint=False
    )
    cause = models.CharField(max_length=16, choices=JobCause, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(fields=["job", "id"], name="jobevent_by_job"),
            # Events come in the order of their times, nearly: a small index finds the latest.
            BrinIndex(
                fields=["created_at"], name="jobevent_by_time", autosummarize=True,
                pages_per_range=32,
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.event}"
