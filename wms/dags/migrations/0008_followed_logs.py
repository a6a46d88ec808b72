"""Followed DAGs: run by somebody's HTCondor, shown by its log."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dags", "0007_dagman"),
    ]

    operations = [
        migrations.CreateModel(
            name="FollowedCluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.BigIntegerField()),
                ("part", models.BigIntegerField(default=0)),
                ("submitted", models.PositiveIntegerField(default=0)),
                ("running", models.PositiveIntegerField(default=0)),
                ("held", models.PositiveIntegerField(default=0)),
                ("ended", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                (
                    "code",
                    models.IntegerField(default=0, help_text="Of the first process that failed."),
                ),
                ("reason", models.TextField(blank=True)),
                (
                    "is_growing",
                    models.BooleanField(default=False, help_text="More of its jobs may be made."),
                ),
                (
                    "is_closed",
                    models.BooleanField(default=False, help_text="Its node has gone on."),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FollowedLog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="Where the log lies, for people.", max_length=1024),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC",
                        help_text="Of times in the log that do not tell theirs.",
                        max_length=64,
                    ),
                ),
                (
                    "allow_events",
                    models.PositiveSmallIntegerField(
                        help_text="Bad events that are no error, as in DAGMAN_ALLOW_EVENTS."
                    ),
                ),
                (
                    "byte_offset",
                    models.BigIntegerField(
                        default=0, help_text="Behind the last complete event that was taken in."
                    ),
                ),
                ("event_count", models.PositiveBigIntegerField(default=0)),
                ("warning_count", models.PositiveIntegerField(default=0)),
                ("warnings", models.JSONField(default=list, help_text="The latest ones.")),
                ("fault", models.TextField(blank=True, help_text="Why nothing more is taken in.")),
                ("last_event_at", models.DateTimeField(blank=True, null=True)),
                ("taken_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FollowedProcess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("process", models.BigIntegerField()),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("idle", "idle"),
                            ("running", "running"),
                            ("held", "held"),
                            ("ended", "ended"),
                        ],
                        default="idle",
                        max_length=7,
                    ),
                ),
                ("submits", models.PositiveIntegerField(default=0)),
                ("executes", models.PositiveIntegerField(default=0)),
                ("ends", models.PositiveIntegerField(default=0)),
                ("aborts", models.PositiveIntegerField(default=0)),
                ("posts", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="dag",
            name="dag_running_has_site",
        ),
        migrations.AddField(
            model_name="dag",
            name="is_followed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Somebody's HTCondor runs it: nothing of it is submitted, its log is read.",
            ),
        ),
        migrations.AddConstraint(
            model_name="dag",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "running"), _negated=True),
                    ("site__isnull", False),
                    ("is_followed", True),
                    _connector="OR",
                ),
                name="dag_running_has_site",
            ),
        ),
        migrations.AddField(
            model_name="followedcluster",
            name="node",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="followed_clusters",
                to="dags.node",
            ),
        ),
        migrations.AddField(
            model_name="followedlog",
            name="dag",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="followed_log",
                to="dags.dag",
            ),
        ),
        migrations.AddField(
            model_name="followedcluster",
            name="log",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="clusters",
                to="dags.followedlog",
            ),
        ),
        migrations.AddField(
            model_name="followedprocess",
            name="cluster",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="processes",
                to="dags.followedcluster",
            ),
        ),
        migrations.AddConstraint(
            model_name="followedcluster",
            constraint=models.UniqueConstraint(
                fields=("log", "cluster", "part"), name="followed_cluster_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="followedprocess",
            constraint=models.UniqueConstraint(
                fields=("cluster", "process"), name="followed_process_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="followedprocess",
            constraint=models.CheckConstraint(
                condition=models.Q(("phase__in", ["idle", "running", "held", "ended"])),
                name="followed_process_phase_known",
            ),
        ),
    ]
