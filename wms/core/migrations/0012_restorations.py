from __future__ import annotations

from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("core", "0011_linked_identities")]

    operations = [
        migrations.CreateModel(
            name="Restoration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "back_to",
                    models.DateTimeField(help_text="The time of the state that came back."),
                ),
                ("restored_at", models.DateTimeField()),
                (
                    "origin",
                    models.TextField(help_text="Where it came from: the backup, or what was done."),
                ),
                (
                    "noted_up_to",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The last job that was told of it; all, when told.",
                    ),
                ),
                (
                    "is_told",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="All jobs that were open were told of it.",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="restoration",
            constraint=models.CheckConstraint(
                condition=models.Q(("back_to__lte", models.F("restored_at"))),
                name="restoration_goes_back",
            ),
        ),
    ]
