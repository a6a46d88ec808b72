"""Notices about jobs."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notices", "0001_schema"),
    ]

    operations = [
        migrations.AlterField(
            model_name="notice",
            name="subject_kind",
            field=models.CharField(
                choices=[
                    ("dag", "DAG"),
                    ("job", "job"),
                    ("failure-group", "failure group"),
                    ("site", "site"),
                    ("loop", "control loop"),
                    ("channel", "channel"),
                ],
                max_length=16,
            ),
        ),
    ]
