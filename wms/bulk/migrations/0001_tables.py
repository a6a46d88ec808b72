import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("bulk", "0001_schema")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("object_id", models.BigIntegerField()),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("done", "done"),
                            ("skipped", "skipped"),
                            ("failed", "failed"),
                        ],
                        db_default="pending",
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("reason", models.TextField(blank=True, db_default="", default="")),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("outcome__in", ["pending", "done", "skipped", "failed"])
                        ),
                        name="bulkitem_outcome_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("outcome__in", ["skipped", "failed"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="bulkitem_refusal_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkOperation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("list_name", models.CharField(max_length=32)),
                ("action", models.CharField(max_length=32)),
                ("arguments", models.JSONField(default=dict)),
                ("reason", models.TextField(blank=True)),
                (
                    "filters",
                    models.JSONField(
                        help_text="The filter that chose the objects; null: they were named one by one.",
                        null=True,
                    ),
                ),
                (
                    "snapshot_at",
                    models.DateTimeField(help_text="What was made after this is not in it."),
                ),
                (
                    "shown_count",
                    models.BigIntegerField(
                        help_text="How many objects the list showed; null: it did not tell.",
                        null=True,
                    ),
                ),
                ("is_shown_estimate", models.BooleanField(default=False)),
                ("frozen_count", models.PositiveIntegerField(default=0)),
                ("done_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("skipped_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("failed_count", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "batch_limit",
                    models.PositiveIntegerField(
                        help_text="So many objects at once, since more took too long.", null=True
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("preview", "preview"),
                            ("confirmed", "confirmed"),
                            ("running", "running"),
                            ("stopped", "stopped"),
                            ("done", "done"),
                        ],
                        default="preview",
                        max_length=16,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", frozenset(["confirmed", "running"]))),
                        fields=["id"],
                        name="bulkoperation_to_do",
                    ),
                    models.Index(fields=["state", "state_since"], name="bulkoperation_by_state"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["preview", "confirmed", "running", "stopped", "done"])
                        ),
                        name="bulkoperation_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "frozen_count__gte",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("done_count"), "+", models.F("skipped_count")
                                    ),
                                    "+",
                                    models.F("failed_count"),
                                ),
                            )
                        ),
                        name="bulkoperation_counts_fit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state", "preview"), ("confirmed_at__isnull", False), _connector="OR"
                        ),
                        name="bulkoperation_was_confirmed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", frozenset(["done", "stopped"])), _negated=True),
                            ("ended_at__isnull", False),
                            _connector="OR",
                        ),
                        name="bulkoperation_end_has_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkOperationEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event", models.CharField(max_length=32)),
                ("from_state", models.CharField(blank=True, max_length=16)),
                ("to_state", models.CharField(blank=True, max_length=16)),
                ("actor", models.CharField(max_length=160)),
                ("reason", models.TextField(blank=True)),
                ("facts", models.JSONField(blank=True, default=dict)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
    ]
