import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("jobs", "0005_fetch_and_send"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="InputChange",
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
                        blank=True, help_text="Of the file; empty: of any.", max_length=1000
                    ),
                ),
                (
                    "input_set_id",
                    models.BigIntegerField(help_text="The set that is to be resolved.", null=True),
                ),
                (
                    "after",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="Sets up to this one have been told."
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("input_set_id__isnull", False)),
                        fields=["input_set_id"],
                        name="input_change_of_set",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InputSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        blank=True,
                        help_text="SHA-256 of what is wanted; none: nobody joins by it any more.",
                        max_length=64,
                        null=True,
                        unique=True,
                    ),
                ),
                (
                    "names",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=1000), size=None
                    ),
                ),
                (
                    "name_count",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func("names", function="cardinality"),
                        output_field=models.IntegerField(),
                    ),
                ),
                (
                    "is_anywhere",
                    models.BooleanField(
                        db_default=False, default=False, help_text="They may be fetched from afar."
                    ),
                ),
                (
                    "waits",
                    models.BooleanField(
                        db_default=True, default=True, help_text="What is nowhere is waited for."
                    ),
                ),
                (
                    "expected",
                    models.JSONField(
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text="Names that will be at a storage, with its name.",
                    ),
                ),
                (
                    "is_of_dag",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="All nodes of a DAG want them together.",
                    ),
                ),
                (
                    "is_asleep",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="No DAG that is open names it: it is not kept.",
                    ),
                ),
                (
                    "sites",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="Empty list: none; null: any.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "they tie it to no site"),
                            ("near", "they are near some sites"),
                            ("apart", "no site is near all of them"),
                            ("missing", "some are nowhere"),
                        ],
                        db_default="",
                        max_length=8,
                    ),
                ),
                (
                    "told",
                    models.TextField(
                        blank=True, db_default="", help_text="Where they are, as a sentence."
                    ),
                ),
                (
                    "tenths",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="How many tenths of their bytes are near each site.",
                    ),
                ),
                ("version", models.PositiveIntegerField(db_default=1, default=1)),
                (
                    "is_moving",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Jobs that wait by an earlier version may be.",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("is_asleep", False)),
                        fields=["names"],
                        name="input_set_by_name",
                    ),
                    models.Index(
                        condition=models.Q(("is_moving", True)),
                        fields=["id"],
                        name="input_set_moving",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", ["", "near", "apart", "missing"])),
                        name="input_set_cause_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ResolvedSet",
            fields=[
                (
                    "input_set",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="resolution",
                        serialize=False,
                        to="jobs.inputset",
                    ),
                ),
                (
                    "resolved_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["resolved_at"], name="resolved_set_by_time")],
            },
        ),
    ]
