import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    initial = True

    dependencies = [
        ("accounting", "0002_links"),
        ("dags", "0007_labels_and_priority"),
        ("jobs", "0004_labels_and_use"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                ("cron", models.CharField(max_length=200)),
                ("time_zone", models.CharField(max_length=64)),
                (
                    "allows_overlap",
                    models.BooleanField(
                        default=False,
                        help_text="Submitted also while the DAG before has not ended.",
                    ),
                ),
                (
                    "grace_s",
                    models.PositiveIntegerField(help_text="It is not submitted later than that."),
                ),
                (
                    "kept_runs",
                    models.PositiveSmallIntegerField(help_text="Records of times that are kept."),
                ),
                (
                    "dag_files",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), size=None
                    ),
                ),
                ("description_name", models.CharField(blank=True, max_length=1024)),
                ("directory", models.CharField(blank=True, max_length=1024)),
                ("root_path", models.CharField(blank=True, max_length=1000)),
                ("uses_dag_dir", models.BooleanField(default=False)),
                ("options", models.JSONField(default=dict)),
                ("binding", models.CharField(blank=True, max_length=8)),
                (
                    "labels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), default=list, size=None
                    ),
                ),
                ("priority", models.PositiveSmallIntegerField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("paused", "paused"),
                            ("removed", "removed"),
                        ],
                        default="active",
                        max_length=16,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True)),
                (
                    "next_at",
                    models.DateTimeField(help_text="Its next time, while it is active.", null=True),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "accounting_group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedules",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedules",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScheduleEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event", models.CharField(max_length=32)),
                ("from_state", models.CharField(blank=True, max_length=16)),
                ("to_state", models.CharField(blank=True, max_length=16)),
                ("actor", models.CharField(max_length=160)),
                ("reason", models.TextField(blank=True)),
                ("facts", models.JSONField(blank=True, default=dict)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="schedules.schedule",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScheduleFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("path", models.CharField(max_length=1024)),
                (
                    "blob",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="schedules.schedule",
                    ),
                ),
            ],
            options={
                "ordering": ["path"],
            },
        ),
        migrations.CreateModel(
            name="ScheduleRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("planned_at", models.DateTimeField()),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("submitted", "a DAG was submitted"),
                            ("overlap", "the DAG before had not ended"),
                            ("missed", "it was too late"),
                            ("failed", "the DAG was refused"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(blank=True, help_text="Why no DAG was submitted.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="schedule_runs",
                        to="dags.dag",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="schedules.schedule",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("next_at__isnull", False)),
                fields=["next_at", "id"],
                name="schedule_due",
            ),
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(fields=["owner", "id"], name="schedule_by_owner"),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["active", "paused", "removed"])),
                name="schedule_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(("state", "active"), ("next_at__isnull", True), _connector="OR"),
                name="schedule_has_a_next_time_while_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "removed"), _negated=True),
                fields=("owner", "name"),
                name="schedule_name_unique",
            ),
        ),
        migrations.AddIndex(
            model_name="scheduleevent",
            index=models.Index(fields=["schedule", "id"], name="scheduleevent_by_schedule"),
        ),
        migrations.AddConstraint(
            model_name="schedulefile",
            constraint=models.UniqueConstraint(
                fields=("schedule", "path"), name="schedule_file_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedulerun",
            constraint=models.UniqueConstraint(
                fields=("schedule", "planned_at"), name="schedule_time_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedulerun",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["submitted", "overlap", "missed", "failed"])),
                name="schedule_outcome_known",
            ),
        ),
    ]
