"""Last test of the connection to each queue's batch system, asked for by hand."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("pilots", "0003_frontends_that_call"),
        ("sites", "0002_commissioning"),
    ]

    operations = [
        migrations.CreateModel(
            name="ConnectionTest",
            fields=[
                (
                    "queue",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="connection_test",
                        serialize=False,
                        to="sites.queue",
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("asked_by", models.CharField(max_length=150)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not asked yet"),
                            ("answered", "it answers"),
                            ("settings", "the queue's settings are wrong"),
                            ("login", "its login cannot be used"),
                            ("unreachable", "no answer came"),
                            ("refused", "it refused"),
                            ("timeout", "it did not answer in time"),
                            ("fault", "the adapter failed"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                ("detail", models.TextField(blank=True, db_default="", default="")),
                ("ended_at", models.DateTimeField(null=True)),
                ("took_s", models.FloatField(null=True)),
                ("total", models.IntegerField(help_text="Places for pilots.", null=True)),
                ("free", models.IntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("outcome", "")),
                            models.Q(
                                models.Q(("outcome", ""), _negated=True),
                                ("ended_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="connection_test_ends_with_outcome",
                    )
                ],
            },
        ),
    ]
