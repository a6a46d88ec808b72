import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("dags", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Trial",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("check", "check"), ("dry_run", "dry run")], max_length=8
                    ),
                ),
                (
                    "request",
                    models.JSONField(
                        help_text="The DAG files, from where names are looked up, how nodes behave."
                    ),
                ),
                (
                    "archive",
                    models.CharField(
                        help_text="Name of the kept files.", max_length=64, unique=True
                    ),
                ),
                ("size_bytes", models.BigIntegerField(help_text="Of the kept files.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("stopped", "stopped"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("attempt_number", models.PositiveSmallIntegerField(default=0)),
                (
                    "lease",
                    models.CharField(
                        blank=True, help_text="Of the worker that is at it.", max_length=64
                    ),
                ),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "node_count",
                    models.PositiveIntegerField(default=0, help_text="Of the DAG in a dry run."),
                ),
                (
                    "ended_count",
                    models.PositiveIntegerField(default=0, help_text="So many have ended in it."),
                ),
                (
                    "exit_code",
                    models.SmallIntegerField(
                        help_text="As of the command; 1: not well.", null=True
                    ),
                ),
                (
                    "report",
                    models.TextField(blank=True, help_text="In JSON, as the command prints it."),
                ),
                ("text", models.TextField(blank=True, help_text="The report for people.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dag_trials",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TrialEvent",
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
                    "trial",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="dags.trial",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(fields=["owner", "id"], name="trial_by_owner"),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(
                condition=models.Q(("state__in", frozenset(["running", "waiting"]))),
                fields=["id"],
                name="trial_to_do",
            ),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(fields=["ended_at"], name="trial_by_end"),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["waiting", "running", "done", "failed", "stopped"])
                ),
                name="trial_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "running"), _negated=True),
                    ("lease_until__isnull", False),
                    _connector="OR",
                ),
                name="trial_running_has_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("state__in", frozenset(["done", "failed", "stopped"])), _negated=True
                    ),
                    ("ended_at__isnull", False),
                    _connector="OR",
                ),
                name="trial_end_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "done"), _negated=True),
                    models.Q(("report", ""), _negated=True),
                    _connector="OR",
                ),
                name="trial_done_has_report",
            ),
        ),
        migrations.AddIndex(
            model_name="trialevent",
            index=models.Index(fields=["trial", "id"], name="trialevent_by_trial"),
        ),
    ]
