from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("placement", "0010_requirements_of_storages"),
    ]

    operations = [
        migrations.CreateModel(
            name="Feeder",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                (
                    "is_armed",
                    models.BooleanField(
                        default=True, help_text="The next run begins as soon as the queue is low."
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        help_text="When the next run may begin though it is not armed.", null=True
                    ),
                ),
                (
                    "lease",
                    models.CharField(
                        blank=True, help_text="Of the worker that runs it.", max_length=64
                    ),
                ),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "runs",
                    models.PositiveBigIntegerField(default=0, help_text="How many have begun."),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(
                        default=0, help_text="How many failed in a row of late."
                    ),
                ),
                (
                    "active",
                    models.PositiveIntegerField(
                        help_text="Requests that waited or ran when the last run began.", null=True
                    ),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(help_text="Empty while it runs.", null=True)),
                ("exit_code", models.IntegerField(null=True)),
                (
                    "failure",
                    models.TextField(
                        blank=True, help_text="Why it was not started or was stopped."
                    ),
                ),
                ("output", models.TextField(blank=True, help_text="The last lines that it said.")),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="feeder_is_one"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease", ""), ("lease_until", None)),
                            models.Q(
                                models.Q(("lease", ""), _negated=True),
                                ("ended_at", None),
                                ("lease_until__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="feeder_lease_has_end",
                    ),
                ],
            },
        ),
    ]
