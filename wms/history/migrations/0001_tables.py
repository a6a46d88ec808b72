import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("history", "0001_schema")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Series",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=128, unique=True)),
            ],
            options={
                "verbose_name_plural": "series",
            },
        ),
        migrations.CreateModel(
            name="Bin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "archive",
                    models.PositiveSmallIntegerField(help_text="Index into the list of archives."),
                ),
                ("slot", models.PositiveIntegerField()),
                ("start", models.DateTimeField()),
                ("count", models.PositiveIntegerField()),
                ("total", models.FloatField()),
                ("minimum", models.FloatField()),
                ("maximum", models.FloatField()),
                ("last", models.FloatField()),
                ("last_at", models.DateTimeField(help_text="When `last` was sampled.", null=True)),
                (
                    "counts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), null=True, size=None
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bins",
                        to="history.series",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("series", "archive", "slot"), name="bin_unique")
                ],
            },
        ),
    ]
