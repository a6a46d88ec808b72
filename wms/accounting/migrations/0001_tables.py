import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("accounting", "0001_schema"),
        ("accounting", "0002_quota"),
        ("accounting", "0003_frontends"),
        ("accounting", "0004_start_expressions"),
    ]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AccountingGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z][A-Za-z0-9_-]*(\\.[A-Za-z][A-Za-z0-9_-]*)*\\Z",
                                "Use words of letters, digits, hyphens and underscores, joined by points.",
                            )
                        ],
                    ),
                ),
                (
                    "quota_kind",
                    models.CharField(
                        choices=[("static", "places"), ("dynamic", "fraction of the parent's")],
                        default="dynamic",
                        help_text="Unit of the quota.",
                        max_length=8,
                    ),
                ),
                (
                    "quota",
                    models.FloatField(
                        default=0.0,
                        help_text="Places (matches held at once), or the fraction of the parent's from 0 to 1.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1000000000000.0),
                        ],
                    ),
                ),
                (
                    "accepts_surplus",
                    models.BooleanField(
                        default=True,
                        help_text="May use what other groups leave unused, beyond its quota.",
                    ),
                ),
                (
                    "share",
                    models.FloatField(
                        db_default=1000.0,
                        default=1000.0,
                        help_text="Its part in the draws of TaskQueues, relative to other groups; divided equally among its users that have jobs waiting.",
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(1000000000000.0),
                        ],
                    ),
                ),
                (
                    "has_job_sharing",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="JOB_SHARING: the share belongs to the group as a whole, and a private pilot of one member runs the jobs of all.",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("quota__gte", 0)), name="group_quota_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("share__gt", 0)), name="group_share_positive"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ConcurrencyLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A(\\*|[a-z_][a-z0-9_]*(\\.(\\*|[a-z_][a-z0-9_]*))?)\\Z",
                                "Use a lower-case name such as db or db.read; db.* and * are for all without their own limit.",
                            )
                        ],
                    ),
                ),
                (
                    "maximum",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1000000000000.0),
                        ]
                    ),
                ),
                (
                    "note",
                    models.CharField(blank=True, help_text="What it protects.", max_length=200),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("maximum__gte", 0)), name="limit_positive"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("site_name", models.CharField(max_length=64)),
                ("owner_name", models.CharField(blank=True, max_length=150)),
                ("useful_s", models.FloatField(default=0.0)),
                ("failed_s", models.FloatField(default=0.0)),
                ("lost_s", models.FloatField(default=0.0)),
                ("idle_s", models.FloatField(default=0.0)),
                ("validation_s", models.FloatField(default=0.0)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("pilots", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "site_name", "owner_name"), name="daily_use_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Frontend",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9][A-Za-z0-9_.-]*\\Z",
                                "Use letters, digits, points, hyphens and underscores.",
                            )
                        ],
                    ),
                ),
                (
                    "description",
                    models.TextField(blank=True, help_text="Who it is, and whom to ask."),
                ),
                (
                    "start_expression",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="ClassAd expression: for which jobs (TARGET) it has pilots at which entry (MY); its pilots take no others. Empty: for all of its groups.",
                    ),
                ),
                (
                    "is_enabled",
                    models.BooleanField(
                        default=True,
                        help_text="For one that is off no pilot is sent, and those that wait are taken back.",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "max_waiting_jobs",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Jobs that wait, and nodes and jobs that are still to be made. Empty: no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "max_clusters",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Clusters and DAGs that have not ended. Empty: no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "max_bytes",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Size of all stored input and output files. Empty: no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
            ],
            options={
                "ordering": ["group__name", "user__username"],
            },
        ),
        migrations.CreateModel(
            name="Submitter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "real_priority",
                    models.FloatField(
                        default=0.5,
                        help_text="Slots used of late, the older the less they count; at least 0.5.",
                    ),
                ),
                (
                    "factor",
                    models.FloatField(
                        default=1000.0,
                        help_text="The effective priority is the real one times this; smaller is better.",
                        validators=[
                            django.core.validators.MinValueValidator(1.0),
                            django.core.validators.MaxValueValidator(1000000000000.0),
                        ],
                    ),
                ),
                ("used_slots", models.FloatField(default=0.0, help_text="Cores in use now.")),
                (
                    "used_slot_s",
                    models.FloatField(default=0.0, help_text="Core seconds used in all."),
                ),
                (
                    "charged_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("factor__gte", 1)), name="submitter_factor_at_least_one"
                    )
                ],
            },
        ),
    ]
