"""What pilots fetch, the checks that were added, and what checks found."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0003_daily_use"),
        ("pilots", "0004_commands_and_accounts"),
        ("sites", "0005_pilot_terms_and_pressure"),
    ]

    operations = [
        migrations.CreateModel(
            name="PilotFile",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("content", models.BinaryField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PilotManifest",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("content", models.BinaryField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NodeCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=64, unique=True)),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=100,
                        help_text="Checks run in ascending order of this, after the built-in ones.",
                    ),
                ),
                (
                    "script",
                    models.TextField(
                        help_text="What runs on the node: its first line names the interpreter, as #!/bin/sh."
                    ),
                ),
                (
                    "settings",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What the script is given as settings: a JSON object.",
                    ),
                ),
                (
                    "time_limit_s",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="A check that takes longer has failed.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3600),
                        ],
                    ),
                ),
                (
                    "period_s",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Time between repetitions while the pilot runs jobs; empty: only at its start.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only for private pilots of this group; empty: for all pilots.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only at this site; empty: at all.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="node_checks",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "name"],
            },
        ),
        migrations.CreateModel(
            name="PilotCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("is_ok", models.BooleanField()),
                (
                    "kind",
                    models.CharField(
                        blank=True, help_text="What sort of failure it is.", max_length=32
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("metrics", models.JSONField(default=dict)),
                ("seconds", models.FloatField()),
                (
                    "key",
                    models.CharField(help_text="The pilot's name for this result.", max_length=64),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "pilot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="pilots.pilot",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_ok", False)),
                        fields=["created_at"],
                        name="pilotcheck_failed",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("pilot", "key"), name="pilotcheck_told_once")
                ],
            },
        ),
    ]
