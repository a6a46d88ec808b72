"""Models of schedules, their files, the times that they had, and their events."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from wms.accounting.models import AccountingGroup
from wms.core.models import EventRecord
from wms.dags.models import Dag
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.models import Blob
from wms.schedules.cron import MAX_TEXT
from wms.schedules.states import RunOutcome, ScheduleState


class Schedule(models.Model):
    """A DAG that is submitted again and again, at times in cron form.

    What is submitted is kept as it was given: files by their contents, options, labels. Each DAG
    has a workspace of its own.
    """

    name = models.CharField(max_length=128)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="schedules", db_index=False
    )
    accounting_group = models.ForeignKey(
        AccountingGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="schedules"
    )
    limited_to = models.BigIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="Id of the frontend that the token was limited to by which it was made; its DAGs "
        "are submitted so too. Empty: it was not limited.",
    )
    cron = models.CharField(max_length=MAX_TEXT)
    time_zone = models.CharField(max_length=64)
    allows_overlap = models.BooleanField(
        default=False, help_text="Submitted also while the DAG before has not ended."
    )
    grace_s = models.PositiveIntegerField(help_text="It is not submitted later than that.")
    kept_runs = models.PositiveSmallIntegerField(help_text="Records of times that are kept.")
    dag_files = ArrayField(models.CharField())
    description_name = models.CharField(max_length=MAX_PATH_BYTES, blank=True)
    directory = models.CharField(max_length=MAX_PATH_BYTES, blank=True)
    root_path = models.CharField(max_length=1000, blank=True)
    uses_dag_dir = models.BooleanField(default=False)
    options = models.JSONField(default=dict)
    binding = models.CharField(max_length=8, blank=True)
    labels = ArrayField(models.CharField(), default=list)
    priority = models.PositiveSmallIntegerField(null=True, blank=True)
    state = models.CharField(max_length=16, choices=ScheduleState, default=ScheduleState.ACTIVE)
    state_since = models.DateTimeField(db_default=Now())
    state_reason = models.TextField(blank=True)
    next_at = models.DateTimeField(null=True, help_text="Its next time, while it is active.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["next_at", "id"], condition=Q(next_at__isnull=False), name="schedule_due"
            ),
            models.Index(fields=["owner", "id"], name="schedule_by_owner"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ScheduleState.values), name="schedule_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state="active") | Q(next_at__isnull=True),
                name="schedule_has_a_next_time_while_active",
            ),
            # Under the name of one that was removed another can be made.
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=~Q(state="removed"),
                name="schedule_name_unique",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"


class ScheduleFile(models.Model):
    """A file that each DAG of a schedule is submitted with."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=MAX_PATH_BYTES)
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "path"], name="schedule_file_unique"),
        ]

    def __str__(self) -> str:
        return self.path


class ScheduleRun(models.Model):
    """A time of a schedule that has come, and what became of it; there is one for each time.

    A DAG that somebody let be submitted beside the times has one as well.
    """

    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    planned_at = models.DateTimeField()
    outcome = models.CharField(max_length=16, choices=RunOutcome)
    dag = models.ForeignKey(Dag, null=True, on_delete=models.SET_NULL, related_name="schedule_runs")
    reason = models.TextField(blank=True, help_text="Why no DAG was submitted.")
    asked_by = models.CharField(
        max_length=160,
        blank=True,
        default="",
        db_default="",
        help_text="Who let it be submitted beside the times; empty: it was a time of the schedule.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "planned_at"], name="schedule_time_once"),
            models.CheckConstraint(
                condition=Q(outcome__in=RunOutcome.values), name="schedule_outcome_known"
            ),
        ]

    def __str__(self) -> str:
        return f"schedule {self.schedule_id} at {self.planned_at}"


class ScheduleEvent(EventRecord):
    """One change of a schedule by a person."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="events")

    class Meta:
        indexes = [models.Index(fields=["schedule", "id"], name="scheduleevent_by_schedule")]

    def __str__(self) -> str:
        return f"schedule {self.schedule_id}: {self.event}"
