import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("jobs", "0002_triggers_and_view"),
        ("placement", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PlacementAllocation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("host", models.CharField(max_length=255)),
                ("size_bytes", models.BigIntegerField()),
                ("expires_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="PlacementCredential",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scheme", models.CharField(max_length=32)),
                ("host", models.CharField(max_length=255)),
                ("port", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("password", "password of a user"), ("token", "bearer token")],
                        max_length=16,
                    ),
                ),
                (
                    "user",
                    models.CharField(blank=True, help_text="Whose password it is.", max_length=255),
                ),
                ("sealed", models.TextField(editable=False, help_text="The secret, encrypted.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("replaced_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["scheme", "host", "port"],
            },
        ),
        migrations.AddField(
            model_name="placementattempt",
            name="held_bytes",
            field=models.BigIntegerField(
                help_text="Of the allocation, for this attempt while it runs.", null=True
            ),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="allocation_name",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="The allocation_id.", max_length=64
            ),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="duration_s",
            field=models.BigIntegerField(help_text="Of an allocation.", null=True),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="expected_adler32",
            field=models.CharField(blank=True, db_default="", default="", max_length=8),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="expected_md5",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="host",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Where space is allocated.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="kind",
            field=models.CharField(
                choices=[
                    ("transfer", "transfer of a file"),
                    ("allocate", "allocation of space"),
                    ("release", "release of an allocation"),
                    ("stage", "staging of a file"),
                    ("remove", "removal of a file"),
                ],
                db_default="transfer",
                default="transfer",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="leader",
            field=models.ForeignKey(
                blank=True,
                help_text="The first request of the same text.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="followers",
                to="placement.placementrequest",
            ),
        ),
        migrations.AlterField(
            model_name="placementrequest",
            name="destination_url",
            field=models.TextField(blank=True),
        ),
        migrations.AlterField(
            model_name="placementrequest",
            name="expected_bytes",
            field=models.BigIntegerField(
                help_text="Of the file, or of the space that is allocated.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="placementrequest",
            name="source_url",
            field=models.TextField(blank=True),
        ),
        migrations.AddIndex(
            model_name="placementrequest",
            index=models.Index(
                condition=models.Q(("state__in", ["received", "processing", "rescheduled"])),
                fields=["leader"],
                name="placement_batch_not_ended",
            ),
        ),
        migrations.AddConstraint(
            model_name="placementrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["transfer", "allocate", "release", "stage", "remove"])
                ),
                name="placement_kind_known",
            ),
        ),
        migrations.AddField(
            model_name="placementallocation",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="placement_allocations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="placementallocation",
            name="workspace",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty for one that no DAG made.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="placement_allocations",
                to="jobs.workspace",
            ),
        ),
        migrations.AddField(
            model_name="placementattempt",
            name="allocation",
            field=models.ForeignKey(
                blank=True,
                help_text="Into which the file is written.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="attempts",
                to="placement.placementallocation",
            ),
        ),
        migrations.AddField(
            model_name="placementcredential",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="placement_credentials",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="placementallocation",
            index=models.Index(
                condition=models.Q(("released_at", None)),
                fields=["host", "expires_at"],
                name="placement_allocation_live",
            ),
        ),
        migrations.AddConstraint(
            model_name="placementallocation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("released_at", None), ("workspace__isnull", False)),
                fields=("workspace", "name"),
                name="placement_allocation_of_dag_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="placementallocation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("released_at", None), ("workspace", None)),
                fields=("owner", "name"),
                name="placement_allocation_of_owner_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="placementallocation",
            constraint=models.CheckConstraint(
                condition=models.Q(("size_bytes__gt", 0)), name="placement_allocation_has_size"
            ),
        ),
        migrations.AddConstraint(
            model_name="placementcredential",
            constraint=models.UniqueConstraint(
                fields=("owner", "scheme", "host", "port"), name="placement_credential_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="placementcredential",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["password", "token"])),
                name="placement_credential_kind_known",
            ),
        ),
    ]
