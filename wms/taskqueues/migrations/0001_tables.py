import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import wms.taskqueues.models
from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("taskqueues", "0001_schema"),
        ("taskqueues", "0002_feedback_by_default"),
        ("taskqueues", "0003_disk_and_limits"),
        ("taskqueues", "0004_no_check_of_waiting"),
    ]

    initial = True

    dependencies = [
        ("core", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="TaskQueue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="SHA-256 of the canonical needs.", max_length=64, unique=True
                    ),
                ),
                ("owner_group", models.CharField(blank=True, max_length=64)),
                ("setup", models.CharField(blank=True, db_default="", max_length=64)),
                (
                    "cpu_time_s",
                    models.PositiveIntegerField(help_text="Upper end of the CPU time segment."),
                ),
                ("cores", models.PositiveIntegerField()),
                ("max_cores", models.PositiveIntegerField(db_default=1)),
                ("memory_mb", models.PositiveIntegerField()),
                ("gpus", models.PositiveIntegerField(db_default=0)),
                (
                    "sites",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                (
                    "banned_sites",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                (
                    "queues",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=130),
                        blank=True,
                        db_default=models.Value([]),
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "platforms",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                (
                    "pilot_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=130),
                        blank=True,
                        db_default=models.Value([]),
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "submit_pools",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=130),
                        blank=True,
                        db_default=models.Value([]),
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "middlewares",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=130),
                        blank=True,
                        db_default=models.Value([]),
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                ("job_type", models.CharField(blank=True, db_default="", max_length=64)),
                (
                    "requirements",
                    models.TextField(
                        blank=True,
                        db_default="",
                        help_text="ClassAd expression over the pilot's ad.",
                    ),
                ),
                ("disk_mb", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "limits",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=130),
                        blank=True,
                        db_default=models.Value([]),
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "TaskQueue",
                "indexes": [
                    models.Index(fields=["cpu_time_s"], name="taskqueue_by_segment"),
                    models.Index(fields=["owner_group", "owner"], name="taskqueue_by_owner"),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["tags"], name="taskqueue_by_tag"
                    ),
                    models.Index(
                        condition=models.Q(("limits", []), _negated=True),
                        fields=["id"],
                        name="taskqueue_with_limits",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "task_queue_id",
                    models.BigIntegerField(
                        help_text="No foreign key: its check would lock the TaskQueue's row at every claim."
                    ),
                ),
                ("priority", models.PositiveSmallIntegerField()),
                ("jobs", models.IntegerField(help_text="How many came; negative: went.")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["task_queue_id", "priority"], name="tally_by_queue")
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskQueuePolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "cpu_segments_s",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(
                            validators=[django.core.validators.MinValueValidator(1)]
                        ),
                        default=wms.taskqueues.models._segments,
                        help_text="Upper ends of the CPU time segments in seconds, each larger than the one before. A job's CPU time is rounded up to the next; a longer one is cut to the last.",
                        size=50,
                    ),
                ),
                (
                    "law",
                    models.CharField(
                        choices=[("exponential", "exponential"), ("uniform", "uniform")],
                        default="exponential",
                        help_text="exponential: -ln(U)/w, twice the priority is drawn twice as often. uniform: U/w, which favours high priorities beyond their share.",
                        max_length=16,
                    ),
                ),
                (
                    "default_share",
                    models.FloatField(
                        default=1000.0,
                        help_text="The share of all users together who submit without a group.",
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(1000000000.0),
                        ],
                    ),
                ),
                (
                    "uses_feedback",
                    models.BooleanField(
                        default=True,
                        help_text="Correct shares by recent use, with the half-life of priorities: less for who used more than their share.",
                    ),
                ),
                (
                    "max_correction",
                    models.FloatField(
                        default=3.0,
                        help_text="Use raises or lowers a share by this factor at the most.",
                        validators=[
                            django.core.validators.MinValueValidator(1.0),
                            django.core.validators.MaxValueValidator(100.0),
                        ],
                    ),
                ),
            ],
            options={
                "verbose_name": "TaskQueue policy",
                "verbose_name_plural": "TaskQueue policy",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("pk", 1)), name="one_task_queue_policy"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WaitingJob",
            fields=[
                ("job_id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "priority",
                    models.PositiveSmallIntegerField(
                        db_default=1, help_text="Of the job, as its owner set it: 0 to 10."
                    ),
                ),
                (
                    "avoided_hosts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(),
                        db_default=models.Value([]),
                        default=list,
                        help_text="Those of the job: worker nodes that have failed it.",
                        size=None,
                    ),
                ),
                (
                    "enqueued_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "task_queue",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="waiting_jobs",
                        to="taskqueues.taskqueue",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["task_queue", "priority", "job_id"], name="waiting_by_queue_and_age"
                    ),
                    models.Index(
                        condition=models.Q(("avoided_hosts", []), _negated=True),
                        fields=["job_id"],
                        name="waiting_again",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("priority__lte", 10)), name="waiting_priority_known"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Ticket",
            fields=[
                (
                    "task_queue",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="ticket",
                        serialize=False,
                        to="taskqueues.taskqueue",
                    ),
                ),
                ("cpu_time_s", models.PositiveIntegerField(help_text="That of the TaskQueue.")),
                ("priority", models.FloatField(help_text="Weight in the draw.")),
                ("starts_at", models.FloatField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["cpu_time_s", "starts_at"], name="ticket_by_place")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("priority__gt", 0)), name="ticket_priority_positive"
                    )
                ],
            },
        ),
    ]
