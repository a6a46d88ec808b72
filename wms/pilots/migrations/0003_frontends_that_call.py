"""Remote frontends that call this installation, with tokens that are made here."""

from __future__ import annotations

import django.core.validators
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("pilots", "0002_batch_nodes"),
    ]

    operations = [
        migrations.AddField(
            model_name="remotefrontend",
            name="caller",
            field=models.UUIDField(
                blank=True,
                help_text="The installation that called with this token first.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="refused_at",
            field=models.DateTimeField(
                blank=True, help_text="When a call of it was refused last.", null=True
            ),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="refused_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="token_at",
            field=models.DateTimeField(
                blank=True, help_text="When its token was made, where it calls.", null=True
            ),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="token_sha256",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="turn",
            field=models.UUIDField(
                blank=True, help_text="Its call that brings no orders yet.", null=True
            ),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="turn_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="remotefrontend",
            name="turn_told",
            field=models.JSONField(
                blank=True,
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="States that the report of this turn told, by the order's id.",
            ),
        ),
        migrations.AlterField(
            model_name="remotefrontend",
            name="factory_name",
            field=models.CharField(
                blank=True,
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
        migrations.AlterField(
            model_name="remotefrontend",
            name="is_enabled",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="One that is off is not called or answered; what waits for it is taken back.",
            ),
        ),
        migrations.AlterField(
            model_name="remotefrontend",
            name="url",
            field=models.CharField(
                blank=True,
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
    ]
