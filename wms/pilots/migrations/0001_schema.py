import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounting", "0001_schema"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sites", "0001_schema"),
    ]

    operations = [
        migrations.CreateModel(
            name="Pilot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("submitted", "submitted"),
                            ("queued", "queued"),
                            ("running", "running"),
                            ("stalled", "stalled"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("aborted", "aborted"),
                            ("removed", "removed"),
                        ],
                        default="submitted",
                        max_length=16,
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("state_reason", models.TextField(blank=True)),
                (
                    "batch",
                    models.CharField(
                        db_index=True,
                        help_text="Name of the batch job that the pilot was submitted in.",
                        max_length=64,
                    ),
                ),
                (
                    "native_id",
                    models.CharField(
                        blank=True, help_text="The batch system's own id.", max_length=128
                    ),
                ),
                (
                    "secret_sha256",
                    models.CharField(
                        help_text="One-time secret for the registration.", max_length=64
                    ),
                ),
                (
                    "token_sha256",
                    models.CharField(blank=True, help_text="Chosen by the pilot.", max_length=64),
                ),
                (
                    "node",
                    models.JSONField(
                        default=dict, help_text="What the pilot reported of its node."
                    ),
                ),
                (
                    "missing_polls",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="Answers of the batch system, one after another, that did not know it.",
                    ),
                ),
                (
                    "missing_since",
                    models.DateTimeField(help_text="Of those answers, the first.", null=True),
                ),
                (
                    "batch_state",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="As it was told last.",
                        max_length=16,
                    ),
                ),
                ("batch_reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "batch_since",
                    models.DateTimeField(help_text="Since when that is told.", null=True),
                ),
                (
                    "holds",
                    models.PositiveSmallIntegerField(
                        db_default=0, default=0, help_text="How often the batch system has held it."
                    ),
                ),
                (
                    "is_forgotten",
                    models.BooleanField(
                        default=False, help_text="The batch system keeps nothing of it any more."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("registered_at", models.DateTimeField(null=True)),
                ("heartbeat_at", models.DateTimeField(null=True)),
                (
                    "fruitless_at",
                    models.DateTimeField(
                        help_text="When it was told last that there is no job for it.", null=True
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "heartbeat_sequence",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of its latest heartbeat, as it counts them.",
                    ),
                ),
                (
                    "load",
                    models.JSONField(help_text="What it told of its node at last.", null=True),
                ),
                (
                    "is_draining",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="It says that it takes no more jobs.",
                    ),
                ),
                (
                    "drain_reason",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why it was told to take no more jobs.",
                    ),
                ),
                (
                    "validation_s",
                    models.FloatField(
                        help_text="What its checks took, as far as it told.", null=True
                    ),
                ),
                (
                    "totals",
                    models.JSONField(
                        help_text="What it told of its life when it ended.", null=True
                    ),
                ),
                (
                    "accounts",
                    models.JSONField(
                        help_text="Its core-seconds and waste, stored once after its end.",
                        null=True,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        help_text="A private pilot's; it keeps the identity that it was submitted with.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner_group",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pilots",
                        to="sites.queue",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("accounts__isnull", True), ("ended_at__isnull", False)),
                        fields=["ended_at"],
                        name="pilot_to_be_accounted",
                    ),
                    models.Index(fields=["queue", "state"], name="pilot_by_queue_and_state"),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False), ("is_forgotten", False)),
                        fields=["queue", "ended_at"],
                        name="pilot_to_be_forgotten",
                    ),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)),
                        fields=["ended_at"],
                        name="pilot_by_end",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "submitted",
                                    "queued",
                                    "running",
                                    "stalled",
                                    "done",
                                    "failed",
                                    "aborted",
                                    "removed",
                                ],
                            )
                        ),
                        name="pilot_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["running", "stalled", "done"]), _negated=True),
                            models.Q(("token_sha256", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="pilot_running_is_registered",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PilotFile",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("content", models.BinaryField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PilotManifest",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("content", models.BinaryField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NodeCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=64, unique=True)),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=100,
                        help_text="Checks run in ascending order of this, after the built-in ones.",
                    ),
                ),
                (
                    "script",
                    models.TextField(
                        help_text="What runs on the node: its first line names the interpreter, as #!/bin/sh."
                    ),
                ),
                (
                    "settings",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What the script is given as settings: a JSON object.",
                    ),
                ),
                (
                    "time_limit_s",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="A check that takes longer has failed.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3600),
                        ],
                    ),
                ),
                (
                    "period_s",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Time between repetitions while the pilot runs jobs; empty: only at its start.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only for private pilots of this group; empty: for all pilots.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only at this site; empty: at all.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="node_checks",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "name"],
            },
        ),
        migrations.CreateModel(
            name="PilotLog",
            fields=[
                (
                    "pilot",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="stored_log",
                        serialize=False,
                        to="pilots.pilot",
                    ),
                ),
                ("size_bytes", models.BigIntegerField(default=0)),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PilotCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("is_ok", models.BooleanField()),
                (
                    "kind",
                    models.CharField(
                        blank=True, help_text="What sort of failure it is.", max_length=32
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("metrics", models.JSONField(default=dict)),
                ("seconds", models.FloatField()),
                (
                    "key",
                    models.CharField(help_text="The pilot's name for this result.", max_length=64),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "pilot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="pilots.pilot",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_ok", False)),
                        fields=["created_at"],
                        name="pilotcheck_failed",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("pilot", "key"), name="pilotcheck_told_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="PilotEvent",
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
                    "pilot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="pilots.pilot",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["pilot", "id"], name="pilotevent_by_pilot")],
            },
        ),
        migrations.CreateModel(
            name="PilotLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("whole", "all pilots"),
                            ("site", "the pilots of a site"),
                            ("group", "the private pilots in the name of a group"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "max_pilots",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Waiting and running pilots, at most; empty: no limit.",
                        null=True,
                    ),
                ),
                (
                    "curb_pilots",
                    models.PositiveIntegerField(
                        blank=True, help_text="From so many on the pressure is halved.", null=True
                    ),
                ),
                (
                    "max_cores",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Cores of those pilots, at most; empty: no limit.",
                        null=True,
                    ),
                ),
                (
                    "max_idle_pilots",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="With so many running without a job none is sent.",
                        null=True,
                    ),
                ),
                (
                    "curb_idle_pilots",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="From so many of those on the pressure is halved.",
                        null=True,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pilot_limits",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope", "site", "group"),
                        name="one_pilot_limit_of_a_scope",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("group", None), ("scope", "whole"), ("site", None)),
                            models.Q(("group", None), ("scope", "site")),
                            models.Q(("scope", "group"), ("site", None)),
                            _connector="OR",
                        ),
                        name="pilot_limit_names_its_scope",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PressureRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("wanted", models.PositiveIntegerField()),
                ("granted", models.PositiveIntegerField()),
                ("ceiling", models.PositiveIntegerField()),
                ("waiting_jobs", models.PositiveIntegerField()),
                ("submitted", models.PositiveIntegerField(help_text="Since the record before.")),
                ("removed", models.PositiveIntegerField(help_text="Since the record before.")),
                ("reasons", models.JSONField()),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pressure_records",
                        to="sites.queue",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="pressurerecord_by_time")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "at"), name="one_pressure_record_at_a_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PressureRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "wanted",
                    models.PositiveIntegerField(
                        default=0, help_text="Pilots that its share of the waiting jobs fills."
                    ),
                ),
                (
                    "granted",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="The level: pilots that should wait in the batch system.",
                    ),
                ),
                (
                    "ceiling",
                    models.PositiveIntegerField(default=0, help_text="Pilots in all, at most."),
                ),
                (
                    "waiting_jobs",
                    models.PositiveIntegerField(default=0, help_text="Its share of those."),
                ),
                ("reasons", models.JSONField(default=list)),
                (
                    "demand_gone_at",
                    models.DateTimeField(
                        help_text="Since when no job waits for this queue.", null=True
                    ),
                ),
                (
                    "idle_since",
                    models.DateTimeField(
                        help_text="Since when no running pilot of it has had a job.", null=True
                    ),
                ),
                ("updated_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(db_index=True)),
                (
                    "recorded_at",
                    models.DateTimeField(help_text="When it was kept as a record.", null=True),
                ),
                (
                    "submitted",
                    models.PositiveIntegerField(default=0, help_text="In its last turn."),
                ),
                ("turn_reasons", models.JSONField(default=list)),
                ("served_at", models.DateTimeField(help_text="When its last turn was.", null=True)),
                (
                    "removed_at",
                    models.DateTimeField(help_text="When pilots were taken back last.", null=True),
                ),
                (
                    "submitted_since",
                    models.PositiveIntegerField(default=0, help_text="Since the last record."),
                ),
                (
                    "removed_since",
                    models.PositiveIntegerField(default=0, help_text="Since the last record."),
                ),
                (
                    "queue",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="request",
                        to="sites.queue",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SuspectedNode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("since", models.DateTimeField()),
                (
                    "failed",
                    models.PositiveIntegerField(help_text="Payloads that failed there lately."),
                ),
                ("tried", models.PositiveIntegerField(help_text="Payloads that ran there lately.")),
                (
                    "others_failed",
                    models.PositiveIntegerField(
                        help_text="Payloads of the same batches that failed on other nodes of the site."
                    ),
                ),
                ("others_tried", models.PositiveIntegerField()),
                (
                    "failed_jobs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="The latest jobs that failed.",
                        size=None,
                    ),
                ),
                ("reason", models.TextField(help_text="Why the latest of these failed.")),
                (
                    "trials",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        db_default=models.Value([]),
                        default=list,
                        help_text="Attempts that were given to it as trials.",
                        size=None,
                    ),
                ),
                ("next_trial_at", models.DateTimeField(help_text="It gets no job before.")),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, db_default="", max_length=160)),
                ("end_reason", models.TextField(blank=True, db_default="")),
                (
                    "site",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="suspected_nodes",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["site", "host", "ended_at"], name="suspected_by_host")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("site", "host"),
                        name="node_suspected_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at", None),
                            models.Q(("end_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="suspicion_end_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ElementContact",
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
                            ("submit", "submission"),
                            ("start", "start of pilots"),
                            ("poll", "status"),
                        ],
                        max_length=8,
                    ),
                ),
                ("failures", models.PositiveIntegerField(default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                ("next_at", models.DateTimeField(null=True)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "seen_pilots",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Pilots that the last answer which was acted upon knew.",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="contacts",
                        to="sites.queue",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "kind"), name="one_contact_of_a_kind"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["submit", "start", "poll"])),
                        name="contact_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("failures", 0),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="contact_failure_has_reason",
                    ),
                ],
            },
        ),
    ]
