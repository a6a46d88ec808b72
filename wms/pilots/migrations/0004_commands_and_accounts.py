"""What pilots are told and tell, their logs and their core-seconds."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0003_daily_use"),
        ("pilots", "0003_task_queue_shares"),
        ("sites", "0004_host_element"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PilotLog",
            fields=[
                (
                    "pilot",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="stored_log",
                        serialize=False,
                        to="pilots.pilot",
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
            model_name="pilot",
            name="accounts",
            field=models.JSONField(
                help_text="Its core-seconds and waste, stored once after its end.", null=True
            ),
        ),
        migrations.AddField(
            model_name="pilot",
            name="drain_reason",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Why it was told to take no more jobs.",
            ),
        ),
        migrations.AddField(
            model_name="pilot",
            name="heartbeat_sequence",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="Number of its latest heartbeat, as it counts them.",
            ),
        ),
        migrations.AddField(
            model_name="pilot",
            name="is_draining",
            field=models.BooleanField(
                db_default=False, default=False, help_text="It says that it takes no more jobs."
            ),
        ),
        migrations.AddField(
            model_name="pilot",
            name="load",
            field=models.JSONField(help_text="What it told of its node at last.", null=True),
        ),
        migrations.AddField(
            model_name="pilot",
            name="totals",
            field=models.JSONField(help_text="What it told of its life when it ended.", null=True),
        ),
        migrations.AddField(
            model_name="pilot",
            name="validation_s",
            field=models.FloatField(
                help_text="What its checks took, as far as it told.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="pilot",
            index=models.Index(
                condition=models.Q(("accounts", None), ("ended_at__isnull", False)),
                fields=["ended_at"],
                name="pilot_to_be_accounted",
            ),
        ),
    ]
