import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    initial = True

    dependencies = [
        ("accounting", "0003_use_by_group_and_label"),
        ("jobs", "0009_limits_of_tokens"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ArchivedDag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "installation",
                    models.CharField(
                        blank=True,
                        help_text="Address of the portal where it was written.",
                        max_length=1000,
                    ),
                ),
                ("dag_id", models.BigIntegerField(help_text="Number of the DAG there.")),
                ("name", models.CharField(max_length=255)),
                ("owner_name", models.CharField(max_length=150)),
                ("group_name", models.CharField(blank=True, max_length=64)),
                (
                    "is_foreign",
                    models.BooleanField(
                        help_text="The DAG is none of this installation: names in it mean nobody here, and operators alone see it."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("idle", "idle"),
                            ("running", "running"),
                            ("held", "held"),
                            ("halted", "halted"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("removed", "removed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                (
                    "product_version",
                    models.CharField(blank=True, help_text="That wrote it.", max_length=64),
                ),
                ("node_counts", models.JSONField(help_text="Nodes of the DAG itself by state.")),
                (
                    "job_counts",
                    models.JSONField(help_text="Jobs by state, of the DAGs inside of it, too."),
                ),
                ("row_counts", models.JSONField(help_text="Rows of the file by kind.")),
                ("failures", models.JSONField(help_text="The first events by which nodes failed.")),
                ("submitted_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                (
                    "imported_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("imported_by", models.CharField(max_length=160)),
                (
                    "accounting_group",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "blob",
                    models.OneToOneField(
                        help_text="The file.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state", "id"], name="archive_by_state")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("installation", "dag_id", "submitted_at"),
                        name="archive_of_dag_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["completed", "failed", "removed"])),
                        name="archive_has_ended",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("accounting_group", None), ("is_foreign", True), ("owner", None)
                            ),
                            models.Q(("is_foreign", False), ("owner__isnull", False)),
                            _connector="OR",
                        ),
                        name="archive_own_has_owner",
                    ),
                ],
            },
        ),
    ]
