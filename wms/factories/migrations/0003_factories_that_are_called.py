"""Remote factories that this installation calls, instead of being called by them."""

from __future__ import annotations

import uuid

import django.contrib.postgres.functions
import django.core.validators
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("factories", "0002_nodes_and_logs"),
    ]

    operations = [
        migrations.AddField(
            model_name="remotefactory",
            name="called_at",
            field=models.DateTimeField(
                blank=True, help_text="When this installation called it last.", null=True
            ),
        ),
        migrations.AddField(
            model_name="remotefactory",
            name="caller",
            field=models.UUIDField(
                db_default=django.contrib.postgres.functions.RandomUUID(),
                default=uuid.uuid4,
                editable=False,
                help_text="What this installation tells of itself where it calls.",
            ),
        ),
        migrations.AddField(
            model_name="remotefactory",
            name="error",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="Why the last call of it failed."
            ),
        ),
        migrations.AddField(
            model_name="remotefactory",
            name="failures",
            field=models.PositiveIntegerField(
                blank=True, db_default=0, default=0, help_text="Calls in a row without an answer."
            ),
        ),
        migrations.AddField(
            model_name="remotefactory",
            name="frontend_name",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="What it calls this installation; with an address only.",
                max_length=64,
                validators=[
                    django.core.validators.RegexValidator(
                        "\\A[A-Za-z0-9][A-Za-z0-9_.-]*\\Z",
                        "Use letters, digits, points, hyphens and underscores.",
                    )
                ],
            ),
        ),
        migrations.AddField(
            model_name="remotefactory",
            name="next_at",
            field=models.DateTimeField(blank=True, help_text="It is not called before.", null=True),
        ),
        migrations.AddField(
            model_name="remotefactory",
            name="url",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Address of its portal, as https://HOST, where this installation calls it; empty: it calls this one.",
                max_length=200,
                validators=[
                    django.core.validators.RegexValidator(
                        "\\Ahttps?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?\\Z",
                        "Use https://HOST, https://HOST:PORT or either with a path; without account and query.",
                    )
                ],
            ),
        ),
        migrations.AlterField(
            model_name="remotefactory",
            name="instance",
            field=models.UUIDField(
                blank=True,
                help_text="The installation that was heard with this token first.",
                null=True,
            ),
        ),
    ]
