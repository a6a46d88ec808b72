import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("failures", "0001_schema"), ("failures", "0002_drop_rule_fault")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="FailureRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=1000, help_text="Rules apply in ascending order of this."
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
                (
                    "pattern",
                    models.CharField(
                        help_text="A regular expression of RE2; {owner}, {site} and {host} stand for the names of what failed. A group (?P<it>...) is what is replaced.",
                        max_length=400,
                    ),
                ),
                (
                    "keeps",
                    models.BooleanField(
                        default=False,
                        help_text="Leave what is found as it is, and out of the rules that follow.",
                    ),
                ),
                (
                    "placeholder",
                    models.CharField(
                        blank=True,
                        help_text="What stands there instead, in < >; empty: nothing.",
                        max_length=12,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[a-z]*\\Z", "Use small letters from a to z."
                            )
                        ],
                    ),
                ),
                ("note", models.CharField(blank=True, help_text="What it is for.", max_length=200)),
                ("is_enabled", models.BooleanField(default=True)),
            ],
            options={
                "ordering": ["position", "pk"],
            },
        ),
        migrations.CreateModel(
            name="RuleBook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1)),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "to_regroup",
                    models.BigIntegerField(default=0, help_text="Failures when the rules changed."),
                ),
                ("regrouped", models.BigIntegerField(default=0)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="FailureGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("job", "job"), ("node", "node or script"), ("pilot", "pilot")],
                        max_length=8,
                    ),
                ),
                ("text", models.TextField(help_text="The message without what differs each time.")),
                ("sample", models.TextField(help_text="A message as it came.")),
                (
                    "category",
                    models.CharField(
                        choices=[
                            ("unknown", "not known"),
                            ("payload", "payload"),
                            ("data", "data"),
                            ("site", "site"),
                            ("system", "system"),
                            ("person", "person"),
                        ],
                        default="unknown",
                        max_length=16,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("muted", "muted"),
                            ("resolved", "resolved"),
                            ("regressed", "regressed"),
                        ],
                        default="active",
                        max_length=16,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True)),
                ("total", models.BigIntegerField(db_default=0, default=0)),
                ("first_seen", models.DateTimeField()),
                ("last_seen", models.DateTimeField(db_index=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["active", "muted", "resolved", "regressed"])
                        ),
                        name="failuregroup_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "category__in",
                                ["unknown", "payload", "data", "site", "system", "person"],
                            )
                        ),
                        name="failuregroup_category_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["muted", "resolved"]), _negated=True),
                            models.Q(("state_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="failuregroup_state_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureBin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "span",
                    models.CharField(
                        choices=[
                            ("hour", "hour"),
                            ("day", "day"),
                            ("hour@", "hour at a site"),
                            ("day@", "day at a site"),
                        ],
                        max_length=5,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("site_name", models.CharField(blank=True, max_length=64)),
                ("count", models.IntegerField()),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bins",
                        to="failures.failuregroup",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["span", "start"], name="failurebin_by_start")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("group", "span", "start", "site_name"), name="failurebin_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Failure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("job", "job"), ("node", "node or script"), ("pilot", "pilot")],
                        max_length=8,
                    ),
                ),
                ("event_id", models.BigIntegerField()),
                ("subject_id", models.BigIntegerField(help_text="The job, node or pilot.")),
                ("dag_id", models.BigIntegerField(null=True)),
                ("owner_id", models.BigIntegerField(null=True)),
                ("site_name", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField()),
                (
                    "rules_version",
                    models.PositiveIntegerField(help_text="By which rules it was grouped."),
                ),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="failures",
                        to="failures.failuregroup",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["group", "id"], name="failure_by_group"),
                    models.Index(
                        fields=["group", "subject_id"], name="failure_by_group_and_subject"
                    ),
                    models.Index(fields=["owner_id", "at"], name="failure_by_owner"),
                    models.Index(fields=["rules_version", "id"], name="failure_by_rules"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "event_id"), name="failure_told_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureGroupEvent",
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
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="failures.failuregroup",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["group", "id"], name="failuregroupevent_by_group")
                ],
            },
        ),
    ]
