"""Disk space and concurrency limits among the needs of TaskQueues; none before."""

from __future__ import annotations

import django.contrib.postgres.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("taskqueues", "0002_feedback_by_default"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="taskqueue",
            name="disk_mb",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="taskqueue",
            name="limits",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=130),
                blank=True,
                db_default=models.Value([]),
                default=list,
                size=None,
            ),
        ),
        migrations.AddIndex(
            model_name="taskqueue",
            index=models.Index(
                condition=models.Q(("limits", []), _negated=True),
                fields=["id"],
                name="taskqueue_with_limits",
            ),
        ),
    ]
