"""What attempts print and use; jobs that are rescheduled after a pause."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0006_unchecked_references"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Stream",
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
                        choices=[("stdout", "stdout"), ("stderr", "stderr")], max_length=8
                    ),
                ),
                ("size_bytes", models.BigIntegerField(default=0)),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.AddField(
            model_name="attempt",
            name="is_accounted",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Its core-seconds are in the accounts."
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="peek_until",
            field=models.DateTimeField(
                help_text="Until then its pilot is asked for what it has printed.", null=True
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="stopped_by",
            field=models.CharField(
                blank=True,
                choices=[
                    ("watchdog", "the watchdog"),
                    ("server", "a command of the portal"),
                    ("preemption", "pre-emption by the batch system"),
                    ("pilot", "its pilot"),
                ],
                db_default="",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="usage",
            field=models.JSONField(
                help_text="What it used, by its latest heartbeat or its report.", null=True
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="not_before",
            field=models.DateTimeField(
                help_text="A job that was rescheduled joins no TaskQueue before.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(
                    ("is_accounted", False), models.Q(("outcome", ""), _negated=True)
                ),
                fields=["id"],
                name="attempt_to_be_accounted",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("not_before__isnull", False), ("state", "received")),
                fields=["not_before"],
                name="job_rescheduled",
            ),
        ),
        migrations.AddField(
            model_name="stream",
            name="attempt",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="streams",
                to="jobs.attempt",
            ),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.UniqueConstraint(fields=("attempt", "kind"), name="stream_unique"),
        ),
    ]
