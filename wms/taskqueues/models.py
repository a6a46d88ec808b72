"""Models of TaskQueues, tickets of the draw, waiting jobs and their counts, and the policy.

The policy has the settings of all TaskQueues.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from matching.task_queues.needs import CPU_SEGMENTS_S
from matching.task_queues.weighted_draws import Law


def _words() -> ArrayField[list[str], list[str]]:
    return ArrayField(
        models.CharField(max_length=130), default=list, db_default=models.Value([]), blank=True
    )


def _segments() -> list[int]:
    return list(CPU_SEGMENTS_S)


class TaskQueue(models.Model):
    """The needs that all of its waiting jobs share; see `matching.task_queues.needs.Needs`.

    A row is never changed. It goes when no job waits in it.
    """

    key = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the canonical needs.")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    owner_group = models.CharField(max_length=64, blank=True)
    setup = models.CharField(max_length=64, blank=True, db_default="")
    cpu_time_s = models.PositiveIntegerField(help_text="Upper end of the CPU time segment.")
    cores = models.PositiveIntegerField()
    max_cores = models.PositiveIntegerField(db_default=1)
    memory_mb = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField(db_default=0)
    sites = ArrayField(models.CharField(max_length=64), default=list)
    banned_sites = ArrayField(models.CharField(max_length=64), default=list)
    queues = _words()
    platforms = ArrayField(models.CharField(max_length=64), default=list)
    pilot_types = _words()
    submit_pools = _words()
    middlewares = _words()
    tags = ArrayField(models.CharField(max_length=64), default=list)
    job_type = models.CharField(max_length=64, blank=True, db_default="")
    requirements = models.TextField(
        blank=True, db_default="", help_text="ClassAd expression over the pilot's ad."
    )
    disk_mb = models.PositiveIntegerField(default=0, db_default=0)
    limits = _words()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "TaskQueue"
        indexes = [
            models.Index(fields=["cpu_time_s"], name="taskqueue_by_segment"),
            models.Index(fields=["owner_group", "owner"], name="taskqueue_by_owner"),
            # For pilots that take only jobs with certain tags: few TaskQueues have any.
            GinIndex(fields=["tags"], name="taskqueue_by_tag"),
            # Few: those whose jobs use concurrency limits.
            models.Index(
                fields=["id"], condition=~models.Q(limits=[]), name="taskqueue_with_limits"
            ),
        ]

    def __str__(self) -> str:
        return f"TaskQueue {self.pk}"


class Ticket(models.Model):
    """A TaskQueue's part in the draw: an interval as long as its priority.

    The intervals of one CPU segment lie side by side, so a random point in their sum hits each
    TaskQueue in proportion to its priority. One that is new has its priority already and waits for
    its interval, without `starts_at`, until the next recomputation. Only
    `wms.taskqueues.priorities` changes these rows.
    """

    task_queue = models.OneToOneField(
        TaskQueue, primary_key=True, on_delete=models.CASCADE, related_name="ticket"
    )
    cpu_time_s = models.PositiveIntegerField(help_text="That of the TaskQueue.")
    priority = models.FloatField(help_text="Weight in the draw.")
    starts_at = models.FloatField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["cpu_time_s", "starts_at"], name="ticket_by_place"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(priority__gt=0), name="ticket_priority_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"ticket of TaskQueue {self.task_queue_id}"


class WaitingJob(models.Model):
    """A job that waits to be claimed. Its row is deleted by the claim, in the same transaction."""

    job_id = models.BigIntegerField(primary_key=True)
    # To check it for each of thousands of jobs takes a fifth of their submission. Who lets jobs
    # wait holds the TaskQueue's row, which is removed under a lock only, and with no job in it.
    task_queue = models.ForeignKey(
        TaskQueue,
        on_delete=models.PROTECT,
        related_name="waiting_jobs",
        db_index=False,
        db_constraint=False,
    )
    priority = models.PositiveSmallIntegerField(
        db_default=1, help_text="Of the job, as its owner set it: 0 to 10."
    )
    avoided_hosts = ArrayField(
        models.CharField(),
        default=list,
        db_default=models.Value([]),
        help_text="Those of the job: worker nodes that have failed it.",
    )
    input_set_id = models.BigIntegerField(
        null=True, help_text="The set of inputs that ties it to sites, if it has any."
    )
    input_version = models.PositiveIntegerField(
        default=0, db_default=0, help_text="The version of this set by which it waits here."
    )
    enqueued_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["task_queue", "priority", "job_id"], name="waiting_by_queue_and_age"
            ),
            # Few: those that have inputs with logical names.
            models.Index(
                fields=["input_set_id", "job_id"],
                condition=models.Q(input_set_id__isnull=False),
                name="waiting_by_inputs",
            ),
            # Few: those that have failed before.
            models.Index(
                fields=["job_id"],
                condition=~models.Q(avoided_hosts=[]),
                name="waiting_again",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(priority__lte=10), name="waiting_priority_known"
            ),
        ]

    def __str__(self) -> str:
        return f"waiting job {self.job_id}"


class Tally(models.Model):
    """An entry in the count of waiting jobs, by TaskQueue and job priority; the sum counts.

    Whoever adds or takes jobs adds an entry, in the same transaction, and waits for nobody; see
    `wms.taskqueues.waiting`.
    """

    task_queue_id = models.BigIntegerField(
        help_text="No foreign key: its check would lock the TaskQueue's row at every claim."
    )
    priority = models.PositiveSmallIntegerField()
    jobs = models.IntegerField(help_text="How many came; negative: went.")

    class Meta:
        indexes = [
            models.Index(fields=["task_queue_id", "priority"], name="tally_by_queue"),
        ]

    def __str__(self) -> str:
        return f"TaskQueue {self.task_queue_id}, priority {self.priority}: {self.jobs:+}"


class TaskQueuePolicy(models.Model):
    """Settings of all TaskQueues: one row."""

    cpu_segments_s = ArrayField(
        models.PositiveIntegerField(validators=[MinValueValidator(1)]),
        default=_segments,
        size=50,
        help_text="Upper ends of the CPU time segments in seconds, each larger than the one "
        "before. A job's CPU time is rounded up to the next; a longer one is cut to the last.",
    )
    law = models.CharField(
        max_length=16,
        choices=[(law.value, law.value) for law in Law],
        default=Law.EXPONENTIAL.value,
        help_text="exponential: -ln(U)/w, twice the priority is drawn twice as often. uniform: "
        "U/w, which favours high priorities beyond their share.",
    )
    default_share = models.FloatField(
        default=1000.0,
        validators=[MinValueValidator(1e-3), MaxValueValidator(1e9)],
        help_text="The share of all users together who submit without a group.",
    )
    uses_feedback = models.BooleanField(
        default=True,
        help_text="Correct shares by recent use, with the half-life of priorities: less for who "
        "used more than their share.",
    )
    max_correction = models.FloatField(
        default=3.0,
        validators=[MinValueValidator(1.0), MaxValueValidator(100.0)],
        help_text="Use raises or lowers a share by this factor at the most.",
    )

    class Meta:
        verbose_name = "TaskQueue policy"
        verbose_name_plural = "TaskQueue policy"
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="one_task_queue_policy"),
        ]

    def __str__(self) -> str:
        return "TaskQueue policy"
