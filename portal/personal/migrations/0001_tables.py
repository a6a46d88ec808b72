import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("personal", "0001_schema")]

    initial = True

    dependencies = [
        ("core", "0001_tables"),
        ("core", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "theme",
                    models.CharField(
                        choices=[("auto", "as the system"), ("light", "light"), ("dark", "dark")],
                        default="auto",
                        max_length=8,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC",
                        help_text="A name of the tz database, UTC or browser.",
                        max_length=64,
                    ),
                ),
                (
                    "density",
                    models.CharField(
                        choices=[("calm", "calm"), ("dense", "dense")], default="calm", max_length=8
                    ),
                ),
                (
                    "has_shortcuts",
                    models.BooleanField(default=True, help_text="Single keys do something."),
                ),
                (
                    "columns",
                    models.JSONField(default=dict, help_text="Names of shown columns, by list."),
                ),
                (
                    "default_filters",
                    models.JSONField(
                        default=dict, help_text="The saved filter with which a list opens, by list."
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "preferences",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("theme__in", ["auto", "light", "dark"])),
                        name="theme_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("density__in", ["calm", "dense"])), name="density_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "list_name",
                    models.CharField(help_text="The list that it is for.", max_length=32),
                ),
                ("name", models.CharField(max_length=80)),
                (
                    "parameters",
                    models.JSONField(help_text="Values as texts, by the name of the filter."),
                ),
                ("is_shared", models.BooleanField(default=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_shared", True)),
                        fields=["list_name"],
                        name="saved_filter_shared",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "list_name", "name"), name="saved_filter_name_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True),
                        name="saved_filter_has_name",
                    ),
                ],
            },
        ),
    ]
