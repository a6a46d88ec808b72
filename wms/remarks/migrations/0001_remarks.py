import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Handling",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("dag", "DAG"),
                            ("site", "site"),
                            ("failure", "failure group"),
                            ("log", "shift log"),
                        ],
                        max_length=8,
                    ),
                ),
                ("subject_id", models.BigIntegerField()),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_until", models.DateTimeField(null=True)),
                ("assigned_at", models.DateTimeField(null=True)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "assigned_to",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subject_kind", "subject_id"), name="handling_of_subject"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("acknowledged_at", None), ("acknowledged_by", None)),
                            models.Q(
                                ("acknowledged_at__isnull", False),
                                ("acknowledged_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="handling_acknowledged_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("assigned_at", None), ("assigned_to", None)),
                            models.Q(
                                ("assigned_at__isnull", False), ("assigned_to__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="handling_assigned_to_somebody",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Remark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("note", "note"),
                            ("acknowledge", "acknowledged"),
                            ("assign", "assigned"),
                            ("hand_back", "handed back"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("dag", "DAG"),
                            ("site", "site"),
                            ("failure", "failure group"),
                            ("log", "shift log"),
                        ],
                        max_length=8,
                    ),
                ),
                ("subject_id", models.BigIntegerField(null=True)),
                ("subject_name", models.CharField(blank=True, max_length=160)),
                ("text", models.TextField(blank=True)),
                ("ticket", models.CharField(blank=True, max_length=500)),
                (
                    "until",
                    models.DateTimeField(
                        help_text="When an acknowledgement ends; empty: never.", null=True
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "author",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Whom the subject was assigned to.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["subject_kind", "subject_id", "id"], name="remark_by_subject"
                    ),
                    models.Index(fields=["author", "id"], name="remark_by_author"),
                    models.Index(fields=["created_at"], name="remark_by_time"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("event__in", ["note", "acknowledge", "assign", "hand_back"])
                        ),
                        name="remark_event_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("subject_kind__in", ["dag", "site", "failure", "log"])),
                        name="remark_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("event", "note"), ("subject_id", None), ("subject_kind", "log")
                            ),
                            models.Q(
                                models.Q(("subject_kind", "log"), _negated=True),
                                ("subject_id__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="remark_has_subject",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("event", "assign"), ("person__isnull", False)),
                            models.Q(
                                models.Q(("event", "assign"), _negated=True), ("person", None)
                            ),
                            _connector="OR",
                        ),
                        name="remark_assigns_somebody",
                    ),
                ],
            },
        ),
    ]
