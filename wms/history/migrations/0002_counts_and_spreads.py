"""Bins of spreads, and when the last sample of a bin was taken."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="bin",
            name="counts",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.PositiveIntegerField(), null=True, size=None
            ),
        ),
        migrations.AddField(
            model_name="bin",
            name="last_at",
            field=models.DateTimeField(help_text="When `last` was sampled.", null=True),
        ),
    ]
