import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("notices", "0001_schema"), ("notices", "0002_notices_of_jobs")]

    initial = True

    dependencies = [
        ("core", "__first__"),
        ("dags", "0001_tables"),
        ("sites", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Channel",
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
                        choices=[("email", "e-mail"), ("webhook", "webhook")], max_length=8
                    ),
                ),
                ("url", models.CharField(blank=True, max_length=500)),
                (
                    "pace",
                    models.CharField(
                        choices=[
                            ("now", "at once, floods as a summary"),
                            ("hourly", "once an hour"),
                            ("daily", "once a day"),
                        ],
                        default="now",
                        max_length=8,
                    ),
                ),
                (
                    "digest_hour",
                    models.PositiveSmallIntegerField(
                        db_default=7,
                        default=7,
                        help_text="At which hour of the day a daily digest leaves.",
                    ),
                ),
                (
                    "digest_zone",
                    models.CharField(
                        db_default="UTC",
                        default="UTC",
                        help_text="In which zone that hour is.",
                        max_length=64,
                    ),
                ),
                (
                    "nonce",
                    models.CharField(
                        blank=True,
                        help_text="Of which, with the portal's key, the secret is made.",
                        max_length=64,
                    ),
                ),
                (
                    "secret_check",
                    models.CharField(
                        blank=True,
                        help_text="By which a secret of another key is known.",
                        max_length=64,
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                ("off_reason", models.TextField(blank=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="channels",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "email")),
                        fields=("user",),
                        name="channel_one_email",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "webhook")),
                        fields=("user", "url"),
                        name="channel_url_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "email"), ("url", "")),
                            models.Q(
                                ("kind", "webhook"),
                                models.Q(("url", ""), _negated=True),
                                models.Q(("nonce", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="channel_webhook_has_url",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("digest_hour__lt", 24)), name="channel_hour_of_a_day"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_enabled", True),
                            models.Q(("off_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="channel_off_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Condition",
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
                        choices=[("downtime", "downtime"), ("loop", "control loop")], max_length=16
                    ),
                ),
                ("subject", models.CharField(max_length=80)),
                ("since", models.DateTimeField()),
                ("told_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "subject"), name="condition_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "thread",
                    models.CharField(
                        blank=True,
                        help_text="The one object that it is about; empty for several.",
                        max_length=120,
                    ),
                ),
                ("is_test", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("sent", "sent"),
                            ("given-up", "given up"),
                            ("dropped", "nothing left to tell"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=300)),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="notices.channel",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["next_at"],
                        name="delivery_waiting",
                    ),
                    models.Index(fields=["channel", "-created_at"], name="delivery_by_channel"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "sent", "given-up", "dropped"])
                        ),
                        name="delivery_state_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
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
                        choices=[
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("failing", "failing"),
                            ("held", "held"),
                            ("halted", "halted"),
                            ("removed", "removed"),
                            ("new-cause", "new cause"),
                            ("regressed", "failing again"),
                            ("banned", "banned"),
                            ("draining", "draining"),
                            ("opened", "opened"),
                            ("node-suspected", "worker node suspected"),
                            ("node-cleared", "worker node cleared"),
                            ("downtime-begun", "downtime begun"),
                            ("downtime-ended", "downtime ended"),
                            ("loop-stale", "loop stale"),
                            ("loop-well", "loop well again"),
                            ("switched-off", "switched off"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("dag", "DAG"),
                            ("job", "job"),
                            ("failure-group", "failure group"),
                            ("site", "site"),
                            ("loop", "control loop"),
                            ("channel", "channel"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject_id", models.CharField(max_length=80)),
                ("title", models.CharField(max_length=200)),
                ("text", models.TextField(blank=True)),
                (
                    "count",
                    models.IntegerField(
                        default=1, help_text="How often it has happened, where that is counted."
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="What it tells of: it is told once.", max_length=120
                    ),
                ),
                ("happened_at", models.DateTimeField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("read_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="notice_by_user"),
                    models.Index(
                        condition=models.Q(("read_at", None)),
                        fields=["user"],
                        name="notice_unread_by_user",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="notice_told_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Outgoing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outgoing",
                        to="notices.channel",
                    ),
                ),
                (
                    "delivery",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outgoing",
                        to="notices.delivery",
                    ),
                ),
                (
                    "notice",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outgoing",
                        to="notices.notice",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("delivery", None)),
                        fields=["channel", "id"],
                        name="outgoing_unpacked",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("delivery", None)),
                        fields=("notice", "channel"),
                        name="outgoing_waits_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "rule",
                    models.CharField(
                        choices=[
                            ("dag", "one DAG: it ends, fails, is failing or is held"),
                            ("my-dags-ended", "a DAG of mine is completed or removed"),
                            ("my-dags-failed", "a DAG of mine is failing or has failed"),
                            ("my-dags-held", "a DAG of mine is held or halted"),
                            (
                                "my-failures",
                                "what is mine fails for a new cause, or again for a resolved one",
                            ),
                            (
                                "site",
                                "a site is banned, drained or opened, a downtime begins or ends, or a node is suspected",
                            ),
                            ("loops", "a control loop is late or fails"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to="dags.dag",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty for the rule of sites: all of them.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to="sites.site",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["rule", "user"], name="subscription_by_rule")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "rule__in",
                                [
                                    "dag",
                                    "my-dags-ended",
                                    "my-dags-failed",
                                    "my-dags-held",
                                    "my-failures",
                                    "site",
                                    "loops",
                                ],
                            )
                        ),
                        name="subscription_rule_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("dag__isnull", False), ("rule", "dag")),
                            models.Q(models.Q(("rule", "dag"), _negated=True), ("dag", None)),
                            _connector="OR",
                        ),
                        name="subscription_of_a_dag_names_it",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rule", "site"), ("site", None), _connector="OR"),
                        name="subscription_names_sites_for_sites",
                    ),
                    models.UniqueConstraint(
                        fields=("user", "rule", "dag", "site"),
                        name="subscription_once",
                        nulls_distinct=False,
                    ),
                ],
            },
        ),
    ]
