"""TaskQueues: the waiting jobs' ids, grouped by equal needs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class TaskQueue(models.Model):
    """The needs that all of its waiting jobs share. One without jobs is never a candidate."""

    key = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the canonical needs.")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    owner_group = models.CharField(max_length=64, blank=True)
    cpu_time_s = models.PositiveIntegerField(help_text="Upper end of the CPU time segment.")
    cores = models.PositiveIntegerField()
    memory_mb = models.PositiveIntegerField()
    sites = ArrayField(models.CharField(max_length=64), default=list)
    banned_sites = ArrayField(models.CharField(max_length=64), default=list)
    platforms = ArrayField(models.CharField(max_length=64), default=list)
    tags = ArrayField(models.CharField(max_length=64), default=list)
    priority = models.FloatField(default=1.0, db_default=1.0, help_text="Weight in the draw.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(priority__gt=0), name="taskqueue_priority_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"TaskQueue {self.pk}"


class WaitingJob(models.Model):
    """A job that waits to be claimed. Its row is deleted by the claim, in the same transaction."""

    job_id = models.BigIntegerField(primary_key=True)
    task_queue = models.ForeignKey(TaskQueue, on_delete=models.PROTECT, related_name="waiting_jobs")
    enqueued_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["task_queue", "job_id"], name="waiting_by_queue_and_age")]

    def __str__(self) -> str:
        return f"waiting job {self.job_id}"
