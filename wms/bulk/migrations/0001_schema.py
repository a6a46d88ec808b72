import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

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
        migrations.AddField(
            model_name="bulkoperation",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="bulk_operations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="bulkoperation",
            name="retry_of",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="retries",
                to="bulk.bulkoperation",
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="operation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="items",
                to="bulk.bulkoperation",
            ),
        ),
        migrations.AddField(
            model_name="bulkoperationevent",
            name="operation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="bulk.bulkoperation",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(fields=["owner", "id"], name="bulkoperation_by_owner"),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(
                condition=models.Q(("state__in", frozenset(["confirmed", "running"]))),
                fields=["id"],
                name="bulkoperation_to_do",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(fields=["state", "state_since"], name="bulkoperation_by_state"),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["preview", "confirmed", "running", "stopped", "done"])
                ),
                name="bulkoperation_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
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
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state", "preview"), ("confirmed_at__isnull", False), _connector="OR"
                ),
                name="bulkoperation_was_confirmed",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", frozenset(["done", "stopped"])), _negated=True),
                    ("ended_at__isnull", False),
                    _connector="OR",
                ),
                name="bulkoperation_end_has_time",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["operation", "outcome", "id"], name="bulkitem_by_outcome"),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["operation", "id"], name="bulkitem_by_operation"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(
                fields=("operation", "object_id"), name="bulkitem_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["pending", "done", "skipped", "failed"])),
                name="bulkitem_outcome_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("outcome__in", ["skipped", "failed"]), _negated=True),
                    models.Q(("reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="bulkitem_refusal_has_reason",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkoperationevent",
            index=models.Index(fields=["operation", "id"], name="bulkevent_by_operation"),
        ),
    ]
