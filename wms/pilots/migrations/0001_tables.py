import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("pilots", "0001_schema"),
        ("pilots", "0002_pressurerequest_owners"),
        ("pilots", "0003_frontends"),
        ("pilots", "0004_software_found"),
        ("pilots", "0005_published"),
        ("pilots", "0006_test_pilots"),
        ("pilots", "0007_credentials"),
        ("pilots", "0008_remote_frontends"),
    ]

    initial = True

    dependencies = [
        ("accounting", "0002_links"),
        ("core", "__first__"),
        ("sites", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Credential",
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
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9][A-Za-z0-9_.-]*\\Z",
                                "Use letters, digits, points, hyphens and underscores.",
                            )
                        ],
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("ssh-key", "SSH private key"),
                            ("htcondor-token", "HTCondor token"),
                            ("bearer-token", "bearer token"),
                            ("certificate", "certificate or proxy with its key"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "account",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="With an SSH key: who is logged in; empty: the user in the queue's settings.",
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9_][A-Za-z0-9_.@-]*\\Z", "Use the name of an account."
                            )
                        ],
                    ),
                ),
                (
                    "directory",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="With an SSH key: where that account's pilots are, in place of the directory in the queue's settings.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A/[^%\\x00-\\x1f\\x7f]*\\Z",
                                "Use an absolute path without percent signs.",
                            )
                        ],
                    ),
                ),
                (
                    "is_enabled",
                    models.BooleanField(
                        default=True,
                        help_text="With one that is off no pilot is submitted; what was submitted with it is still asked for and removed.",
                    ),
                ),
                (
                    "valid_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="Until when it is used; empty: until the time that it tells itself, if any.",
                        null=True,
                    ),
                ),
                (
                    "told_until",
                    models.DateTimeField(
                        editable=False, help_text="The end that its secret tells itself.", null=True
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="The earlier of that time and the one it tells itself.",
                        null=True,
                    ),
                ),
                ("fingerprint", models.CharField(editable=False, max_length=80)),
                (
                    "subject",
                    models.CharField(
                        blank=True,
                        editable=False,
                        help_text="Whom it names, if anybody.",
                        max_length=255,
                    ),
                ),
                ("sealed", models.TextField(editable=False, help_text="The secret, encrypted.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "replaced_at",
                    models.DateTimeField(
                        editable=False, help_text="When its secret was set anew last.", null=True
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="When a batch system was shown it last, to the minute.",
                        null=True,
                    ),
                ),
                (
                    "frontend",
                    models.ForeignKey(
                        blank=True,
                        help_text="Whose pilots are submitted with it; empty: those of the default frontend.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="credentials",
                        to="accounting.frontend",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        blank=True,
                        help_text="Where it is used; it goes before one of the queue's site.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to="sites.queue",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        help_text="In place of a queue: it is used at all queues of the site that take its kind.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("queue", None), ("site__isnull", False)),
                            models.Q(("queue__isnull", False), ("site", None)),
                            _connector="OR",
                        ),
                        name="credential_of_queue_or_site",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                ["ssh-key", "htcondor-token", "bearer-token", "certificate"],
                            )
                        ),
                        name="credential_kind_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("queue__isnull", False)),
                        fields=("queue", "frontend"),
                        name="one_credential_at_a_queue",
                        nulls_distinct=False,
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("site__isnull", False)),
                        fields=("site", "frontend", "kind"),
                        name="one_credential_of_a_kind_at_a_site",
                        nulls_distinct=False,
                    ),
                ],
            },
        ),
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
                    "test",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "none"),
                            ("checks", "checks of the node only"),
                            ("jobs", "checks of the node, then jobs"),
                        ],
                        db_default="",
                        default="",
                        help_text="What a test pilot is for; empty: it was sent for the jobs that wait.",
                        max_length=8,
                    ),
                ),
                (
                    "is_remote",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Sent for another installation: it registers there, and here only its batch system is asked.",
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
                    "published",
                    models.JSONField(
                        db_default={},
                        default=dict,
                        help_text="What checks published of its node, by check.",
                    ),
                ),
                (
                    "variables",
                    models.JSONField(
                        db_default={},
                        default=dict,
                        help_text="What checks published for payloads, by check.",
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
                    "credential",
                    models.ForeignKey(
                        db_index=False,
                        help_text="With which it was submitted; empty: with what its queue's settings name.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="pilots.credential",
                    ),
                ),
                (
                    "frontend",
                    models.ForeignKey(
                        db_index=False,
                        help_text="For whose jobs it was sent; empty: for those of the default frontend.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounting.frontend",
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
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)),
                        fields=["ended_at"],
                        name="pilot_by_end",
                    ),
                    models.Index(fields=["queue", "state"], name="pilot_by_queue_and_state"),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False), ("is_forgotten", False)),
                        fields=["queue", "ended_at"],
                        name="pilot_to_be_forgotten",
                    ),
                    models.Index(
                        condition=models.Q(("credential__isnull", False)),
                        fields=["credential", "state"],
                        name="pilot_by_credential",
                    ),
                    models.Index(
                        condition=models.Q(("test", ""), _negated=True),
                        fields=["queue", "-id"],
                        name="pilot_test_by_queue",
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
                            ("is_remote", True),
                            _connector="OR",
                        ),
                        name="pilot_running_is_registered",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("test__in", ["", "checks", "jobs"])),
                        name="pilot_test_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["queued", "running", "stalled", "submitted"]),
                            models.Q(("test", ""), _negated=True),
                        ),
                        fields=("queue",),
                        name="one_open_test_of_a_queue",
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
                    "credential",
                    models.ForeignKey(
                        help_text="What it was shown; empty: what the queue's settings name.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="pilots.credential",
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
                    models.UniqueConstraint(
                        fields=("queue", "kind", "credential"),
                        name="one_contact_of_a_kind",
                        nulls_distinct=False,
                    ),
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
                    "attributes",
                    models.JSONField(
                        blank=True,
                        db_default={},
                        default=dict,
                        help_text='Attributes of the node that it may publish, with their types (boolean, integer, real, string), as {"Available": "boolean"}. Jobs ask for NAME_Available.',
                    ),
                ),
                (
                    "variables",
                    models.JSONField(
                        blank=True,
                        db_default=[],
                        default=list,
                        help_text='Variables that it may publish for payloads, as ["SOFTWARE_DIR"].',
                    ),
                ),
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
                (
                    "skipped",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What it may not publish, and why.",
                    ),
                ),
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
                    ),
                    models.Index(
                        condition=models.Q(("is_ok", True), ("metrics__has_key", "software")),
                        fields=["pilot"],
                        name="pilotcheck_found_software",
                    ),
                    models.Index(
                        condition=models.Q(("skipped", ""), _negated=True),
                        fields=["name", "created_at"],
                        name="pilotcheck_skipped",
                    ),
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
                            ("frontend", "the pilots of a frontend"),
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
                    "frontend",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.frontend",
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
                        fields=("scope", "site", "group", "frontend"),
                        name="one_pilot_limit_of_a_scope",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("frontend", None),
                                ("group", None),
                                ("scope", "whole"),
                                ("site", None),
                            ),
                            models.Q(("frontend", None), ("group", None), ("scope", "site")),
                            models.Q(("frontend", None), ("scope", "group"), ("site", None)),
                            models.Q(("group", None), ("scope", "frontend"), ("site", None)),
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
                    "frontend",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Whose request it is; empty: of the default frontend.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.frontend",
                    ),
                ),
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
                        fields=("queue", "at", "frontend"),
                        name="one_record_of_a_frontend_at_a_time",
                        nulls_distinct=False,
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
                    "owners",
                    models.JSONField(
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text="Where each pilot is private to somebody else: who needs how many.",
                    ),
                ),
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
                    "expired_at",
                    models.DateTimeField(
                        help_text="When it was found that its lease has ended without a renewal.",
                        null=True,
                    ),
                ),
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
                    "frontend",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Whose request it is; empty: of the default frontend.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.frontend",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requests",
                        to="sites.queue",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue", "frontend"),
                        name="one_request_of_a_frontend",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RemoteFrontend",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        help_text="Address of its portal, as https://HOST.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\Ahttps?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?\\Z",
                                "Use https://HOST, https://HOST:PORT or either with a path; without account and query.",
                            )
                        ],
                    ),
                ),
                (
                    "factory_name",
                    models.CharField(
                        help_text="What it calls this installation.",
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z0-9][A-Za-z0-9_.-]*\\Z",
                                "Use letters, digits, points, hyphens and underscores.",
                            )
                        ],
                    ),
                ),
                (
                    "is_enabled",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="One that is off is not called; what waits for it is taken back.",
                    ),
                ),
                (
                    "instance",
                    models.UUIDField(
                        default=uuid.uuid4, help_text="What this installation tells of it."
                    ),
                ),
                ("called_at", models.DateTimeField(blank=True, null=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "lease_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="Its orders are followed until then, unless it answers again.",
                        null=True,
                    ),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(
                        blank=True, default=0, help_text="Calls in a row without an answer."
                    ),
                ),
                (
                    "next_at",
                    models.DateTimeField(
                        blank=True, help_text="It is not called before.", null=True
                    ),
                ),
                (
                    "error",
                    models.TextField(blank=True, default="", help_text="Why the last call failed."),
                ),
                (
                    "refused",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Entries of ours that it does not use, with the reason.",
                    ),
                ),
                (
                    "frontend",
                    models.OneToOneField(
                        help_text="What it is here: its entries say where it may have pilots.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="remote",
                        to="accounting.frontend",
                    ),
                ),
            ],
            options={
                "ordering": ["frontend__name"],
            },
        ),
        migrations.CreateModel(
            name="RemoteBatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("script", models.TextField()),
                ("cores", models.PositiveIntegerField()),
                ("memory_mb", models.PositiveIntegerField()),
                ("gpus", models.PositiveIntegerField()),
                ("minutes", models.PositiveIntegerField()),
                (
                    "remote",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="pilots.remotefrontend",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("remote", "name"), name="one_batch_of_a_remote")
                ],
            },
        ),
        migrations.CreateModel(
            name="RemoteOrder",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uuid", models.UUIDField()),
                (
                    "sealed",
                    models.TextField(blank=True, help_text="Its secret, until it is submitted."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("submitted", "submitted"),
                            ("returned", "returned"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                (
                    "is_failed",
                    models.BooleanField(
                        default=False,
                        help_text="It was returned because it could not be carried out.",
                    ),
                ),
                (
                    "is_cancelled",
                    models.BooleanField(default=False, help_text="The frontend wants it no more."),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="Why it was returned."),
                ),
                (
                    "told",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The state that the frontend was told.",
                        max_length=16,
                    ),
                ),
                (
                    "is_settled",
                    models.BooleanField(
                        default=False, help_text="It was told how the order ended."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="pilots.remotebatch",
                    ),
                ),
                (
                    "pilot",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="order",
                        to="pilots.pilot",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sites.queue",
                    ),
                ),
                (
                    "remote",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="pilots.remotefrontend",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_settled", False)),
                        fields=["remote", "id"],
                        name="order_to_be_told",
                    ),
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["queue", "remote", "id"],
                        name="order_to_be_submitted",
                    ),
                    models.Index(
                        condition=models.Q(("is_settled", True)),
                        fields=["created_at"],
                        name="order_to_be_forgotten",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("remote", "uuid"), name="one_order_of_a_pilot"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "waiting"), _negated=True),
                            models.Q(
                                models.Q(("sealed", ""), _negated=True), ("queue__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="order_waiting_can_be_submitted",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SeenPublication",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "sha256",
                    models.CharField(help_text="Of the values in canonical form.", max_length=64),
                ),
                ("published", models.JSONField()),
                ("seen_at", models.DateTimeField()),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sites.queue",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["queue", "-seen_at"], name="seenpublication_latest")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "sha256"), name="seenpublication_once")
                ],
            },
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
    ]
