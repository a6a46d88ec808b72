import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("placement", "0001_schema")]

    initial = True

    dependencies = [
        ("core", "__first__"),
        ("jobs", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="PlacementRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "directory",
                    models.CharField(
                        blank=True,
                        help_text="Where in the workspace relative names begin.",
                        max_length=1024,
                    ),
                ),
                ("source_url", models.TextField()),
                ("destination_url", models.TextField()),
                ("arguments", models.TextField(blank=True, help_text="For the module.")),
                (
                    "alternatives",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        help_text="Further pairs of schemes, such as http-file.",
                        size=None,
                    ),
                ),
                ("expected_sha256", models.CharField(blank=True, max_length=64)),
                ("expected_bytes", models.BigIntegerField(null=True)),
                (
                    "attributes",
                    models.JSONField(default=dict, help_text="The whole ad: expressions by name."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("received", "request received"),
                            ("processing", "processing request"),
                            ("rescheduled", "request rescheduled"),
                            ("completed", "request completed"),
                            ("failed", "request failed"),
                            ("removed", "request removed"),
                        ],
                        default="received",
                        max_length=16,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("max_attempts", models.PositiveSmallIntegerField(default=10)),
                (
                    "attempt_number",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="How many attempts have begun."
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(
                        help_text="The next attempt not before this time.", null=True
                    ),
                ),
                (
                    "topic",
                    models.CharField(
                        blank=True,
                        help_text="Which inbox hears of the request's end.",
                        max_length=16,
                    ),
                ),
                ("topic_key", models.BigIntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="placement_requests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="placement_requests",
                        to="jobs.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["topic", "topic_key"], name="placement_by_topic"),
                    models.Index(
                        condition=models.Q(
                            ("state__in", ["received", "processing", "rescheduled"])
                        ),
                        fields=["state", "id"],
                        name="placement_not_ended",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "received",
                                    "processing",
                                    "rescheduled",
                                    "completed",
                                    "failed",
                                    "removed",
                                ],
                            )
                        ),
                        name="placement_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["processing", "completed"]), _negated=True),
                            ("attempt_number__gte", 1),
                            _connector="OR",
                        ),
                        name="placement_under_way_has_attempt",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("attempt_number__lte", models.F("max_attempts"))),
                        name="placement_attempts_limited",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlacementEvent",
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
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="placement.placementrequest",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["request", "id"], name="placementevent_by_request")
                ],
            },
        ),
        migrations.CreateModel(
            name="PlacementAttempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField(help_text="From 1.")),
                ("source_scheme", models.CharField(max_length=32)),
                ("destination_scheme", models.CharField(max_length=32)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "lease",
                    models.CharField(
                        blank=True, help_text="Of the service that runs it.", max_length=64
                    ),
                ),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "exit_code",
                    models.IntegerField(
                        help_text="0 for a success, 111 without a module for the pair of schemes.",
                        null=True,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                (
                    "size_bytes",
                    models.BigIntegerField(help_text="Of the file, once it is there.", null=True),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="placement.placementrequest",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("exit_code", None)),
                        fields=["lease_until"],
                        name="placement_attempt_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("request", "number"), name="placement_attempt_number_unique"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("exit_code", None)),
                        fields=("request",),
                        name="placement_has_one_open_attempt",
                    ),
                ],
            },
        ),
    ]
