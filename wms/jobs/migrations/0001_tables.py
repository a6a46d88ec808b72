import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("jobs", "0001_schema"),
        ("jobs", "0002_descriptions"),
        ("jobs", "0003_clusters"),
        ("jobs", "0004_quotas"),
        ("jobs", "0005_unnamed_contents"),
        ("jobs", "0006_output_leases"),
        ("jobs", "0007_late_binding"),
        ("jobs", "0008_narrower"),
        ("jobs", "0009_directives"),
        ("jobs", "0010_row_of_cluster_once"),
        ("jobs", "0011_attempt_disk"),
        ("jobs", "0012_container_image"),
        ("jobs", "0013_ended_attempts"),
        ("jobs", "0014_ended_jobs_last"),
        ("jobs", "0015_told_events"),
        ("jobs", "0016_lists_of_many_jobs"),
    ]

    initial = True

    dependencies = [
        ("accounting", "0002_links"),
        ("core", "__first__"),
        ("sites", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="LoggedJobEvent",
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("facts", models.JSONField(blank=True, default=dict)),
                (
                    "cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "somebody wanted it"),
                            ("expression", "an expression of its own"),
                            ("begun_held", "it was submitted to be held"),
                            ("job_duration", "it was with a pilot for longer than it may"),
                            ("execution", "its payload ran for longer than it may"),
                            ("checkpoint", "files of its checkpoint are missing"),
                            ("payload", "its payload failed"),
                            ("inputs", "input files are missing"),
                            ("outputs", "output files did not come"),
                            ("image", "no container can be started from its image"),
                            ("unrunnable", "it cannot be run as it is described"),
                            ("unstorable", "what its pilot told of it cannot be stored"),
                            ("undefined", "its site does not define a value that it uses"),
                            ("not_run", "its pilot could not run it"),
                            ("pilot_time", "its pilot had too little time"),
                            ("preempted", "the batch system took its slot back"),
                            ("pilot_stalled", "its pilot fell silent"),
                            ("pilot_failed", "its pilot failed"),
                            ("pilot_ended", "its pilot ended"),
                            ("pilot_removed", "its pilot was removed"),
                            ("dag_held", "its DAG is held"),
                            ("dag_ended", "its DAG ends"),
                            ("dag_left", "its DAG leaves the site"),
                            ("cluster_held", "its cluster is held"),
                            ("cluster_ended", "its cluster was removed"),
                            ("node", "its node has no use for it any more"),
                            ("timeout", "the time of its node was up"),
                        ],
                        max_length=16,
                    ),
                ),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="JobDescription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.BinaryField(
                        help_text="SHA-256 of the content.", max_length=32, unique=True
                    ),
                ),
                (
                    "content",
                    models.JSONField(
                        help_text="Values by name; those that are missing are the defaults."
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Workspace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "owner_group",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The group in whose name it was submitted, for quotas.",
                        max_length=64,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state_since",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("topic_key", models.BigIntegerField(default=0)),
                (
                    "cluster_id",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The first job of those that were submitted with it as one list; 0 if alone.",
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        help_text="A job that was rescheduled joins no TaskQueue before.", null=True
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "enqueue_event",
                    models.BigIntegerField(
                        help_text="Its first event, which this row tells; empty where that has a row of its own.",
                        null=True,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "description",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="What it shares with other jobs.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.jobdescription",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="jobs.workspace",
                    ),
                ),
                (
                    "process",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Its place in the cluster, from 0."
                    ),
                ),
                (
                    "priority",
                    models.PositiveSmallIntegerField(
                        db_default=1,
                        default=1,
                        help_text="From 0 to 10: how much more likely it is drawn than others of its TaskQueue.",
                    ),
                ),
                ("max_attempts", models.PositiveSmallIntegerField(default=5)),
                (
                    "attempt_number",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="The latest attempt; 0 before the first."
                    ),
                ),
                ("payload_failures", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("hold_count", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "has_periodic",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="It has expressions, see `periodic`.",
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("received", "received"),
                            ("waiting", "waiting"),
                            ("matched", "matched"),
                            ("running", "running"),
                            ("stalled", "stalled"),
                            ("held", "held"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("killed", "killed"),
                        ],
                        default="received",
                        max_length=16,
                    ),
                ),
                ("state_reason", models.TextField(blank=True)),
                (
                    "state_cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "somebody wanted it"),
                            ("expression", "an expression of its own"),
                            ("begun_held", "it was submitted to be held"),
                            ("job_duration", "it was with a pilot for longer than it may"),
                            ("execution", "its payload ran for longer than it may"),
                            ("checkpoint", "files of its checkpoint are missing"),
                            ("payload", "its payload failed"),
                            ("inputs", "input files are missing"),
                            ("outputs", "output files did not come"),
                            ("image", "no container can be started from its image"),
                            ("unrunnable", "it cannot be run as it is described"),
                            ("unstorable", "what its pilot told of it cannot be stored"),
                            ("undefined", "its site does not define a value that it uses"),
                            ("not_run", "its pilot could not run it"),
                            ("pilot_time", "its pilot had too little time"),
                            ("preempted", "the batch system took its slot back"),
                            ("pilot_stalled", "its pilot fell silent"),
                            ("pilot_failed", "its pilot failed"),
                            ("pilot_ended", "its pilot ended"),
                            ("pilot_removed", "its pilot was removed"),
                            ("dag_held", "its DAG is held"),
                            ("dag_ended", "its DAG ends"),
                            ("dag_left", "its DAG leaves the site"),
                            ("cluster_held", "its cluster is held"),
                            ("cluster_ended", "its cluster was removed"),
                            ("node", "its node has no use for it any more"),
                            ("timeout", "the time of its node was up"),
                        ],
                        db_default="",
                        default="",
                        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                        max_length=16,
                    ),
                ),
                (
                    "own",
                    models.JSONField(
                        help_text="Values that differ from those of its description; empty: none.",
                        null=True,
                    ),
                ),
                (
                    "site_name",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Where the latest attempt is or was; empty before the first.",
                        max_length=64,
                    ),
                ),
                (
                    "topic",
                    models.CharField(
                        blank=True, help_text="Which inbox hears of the job's end.", max_length=16
                    ),
                ),
                (
                    "submitted_by",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Actor of that event.",
                        max_length=160,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("not_before__isnull", False), ("state", "received")),
                        fields=["not_before"],
                        name="job_rescheduled",
                    ),
                    models.Index(fields=["topic", "topic_key", "state"], name="job_by_topic"),
                    models.Index(
                        condition=models.Q(("cluster_id", models.F("id")), _negated=True),
                        fields=["cluster_id"],
                        name="job_by_cluster",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("has_periodic", True),
                            models.Q(("state__in", ["done", "failed", "killed"]), _negated=True),
                        ),
                        fields=["id"],
                        name="job_with_periodic",
                    ),
                    models.Index(fields=["owner", "state"], name="job_by_owner"),
                    models.Index(
                        condition=models.Q(("site_name", ""), _negated=True),
                        fields=["site_name", "state"],
                        name="job_by_site",
                    ),
                    models.Index(fields=["created_at"], name="job_by_time"),
                    models.Index(fields=["-state", "state_since", "id"], name="job_by_last_change"),
                    models.Index(
                        fields=["name"], name="job_by_name", opclasses=["varchar_pattern_ops"]
                    ),
                    models.Index(
                        condition=models.Q(("state_reason", ""), _negated=True),
                        fields=["state", "id"],
                        name="job_with_reason",
                    ),
                    models.Index(
                        condition=models.Q(("attempt_number__gt", 1)),
                        fields=["attempt_number"],
                        name="job_tried_again",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("topic", "cluster")),
                        fields=("cluster_id", "process"),
                        name="job_of_cluster_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "received",
                                    "waiting",
                                    "matched",
                                    "running",
                                    "stalled",
                                    "held",
                                    "done",
                                    "failed",
                                    "killed",
                                ],
                            )
                        ),
                        name="job_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("state__in", ["matched", "running", "stalled", "done"]),
                                _negated=True,
                            ),
                            ("attempt_number__gte", 1),
                            _connector="OR",
                        ),
                        name="job_with_pilot_has_attempt",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__lte", 10)), name="job_priority_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "held"), _negated=True),
                            models.Q(("state_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="job_held_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("pilot_id", models.BigIntegerField(db_index=True)),
                (
                    "matched_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("wall_s", models.FloatField(null=True)),
                ("cpu_s", models.FloatField(null=True)),
                ("max_rss_mb", models.FloatField(null=True)),
                (
                    "peek_until",
                    models.DateTimeField(
                        help_text="Until then its pilot is asked for what it has printed.",
                        null=True,
                    ),
                ),
                ("match_event", models.BigIntegerField(null=True)),
                ("start_event", models.BigIntegerField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="jobs.job",
                    ),
                ),
                (
                    "cores",
                    models.PositiveIntegerField(
                        db_default=1, help_text="What it may use of its pilot."
                    ),
                ),
                ("memory_mb", models.PositiveIntegerField(db_default=0)),
                ("gpus", models.PositiveIntegerField(db_default=0)),
                ("disk_mb", models.PositiveIntegerField(db_default=0)),
                ("exit_code", models.IntegerField(null=True)),
                ("signal", models.IntegerField(null=True)),
                ("number", models.PositiveSmallIntegerField()),
                ("site_name", models.CharField(max_length=64)),
                ("host", models.CharField(blank=True, max_length=255)),
                (
                    "claim_key",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="Chosen by the pilot for the claim: the same one is given the same attempt.",
                        max_length=64,
                    ),
                ),
                ("job_type", models.CharField(blank=True, db_default="", max_length=64)),
                ("owner_group", models.CharField(blank=True, db_default="", max_length=64)),
                (
                    "limits",
                    models.JSONField(
                        help_text="What it uses of concurrency limits, by name; null: nothing.",
                        null=True,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("done", "done"),
                            ("failed", "failed"),
                            ("lost", "lost"),
                            ("not_run", "not run"),
                            ("killed", "killed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                (
                    "stopped_by",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("watchdog", "the watchdog"),
                            ("server", "a command of the portal"),
                            ("preemption", "pre-emption by the batch system"),
                            ("pilot", "its pilot"),
                            ("pilot_time", "the end of its pilot's time"),
                        ],
                        db_default="",
                        max_length=16,
                    ),
                ),
                (
                    "usage",
                    models.JSONField(
                        help_text="What it used, by its latest heartbeat or its report, but for its columns.",
                        null=True,
                    ),
                ),
                (
                    "actor",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Of its two events.",
                        max_length=160,
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("outcome", "")),
                        fields=["site_name", "job_type", "owner_group"],
                        name="attempt_open_by_kind",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("outcome", ""), ("limits__isnull", False)),
                        fields=["limits"],
                        name="attempt_with_limits",
                    ),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True,
                        fields=["started_at"],
                        name="attempt_by_start",
                        pages_per_range=32,
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("outcome", ""), models.Q(("claim_key", ""), _negated=True)
                        ),
                        fields=("pilot_id", "claim_key"),
                        name="claim_key_open_once",
                    ),
                    models.UniqueConstraint(fields=("job", "number"), name="attempt_number_unique"),
                    models.UniqueConstraint(
                        condition=models.Q(("outcome__in", ["", "done"])),
                        fields=("job",),
                        name="job_open_or_done_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SiteSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(help_text="SHA-256 of the names.", max_length=64, unique=True),
                ),
                (
                    "names",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="EndedAttempt",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Filling",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="filling",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
                ("fields", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="Blob",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("size_bytes", models.BigIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "unnamed_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="When nothing was found to name it; empty while in use.",
                        null=True,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("unnamed_since__isnull", False)),
                        fields=["unnamed_since"],
                        name="blob_unnamed",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Cluster",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                (
                    "labels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("held", "held"),
                            ("completed", "completed"),
                            ("removed", "removed"),
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
                (
                    "state_cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "somebody wanted it"),
                            ("deadline", "its deadline has passed"),
                            ("materialiser", "the materialiser could not go on with it"),
                        ],
                        db_default="",
                        default="",
                        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                        max_length=16,
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        choices=[("submit", "submit language"), ("json", "JSON")], max_length=8
                    ),
                ),
                (
                    "size",
                    models.BigIntegerField(
                        help_text="Rows of its table, each of which is one job."
                    ),
                ),
                (
                    "next_process",
                    models.BigIntegerField(db_default=0, default=0, help_text="Rows made so far."),
                ),
                ("done_count", models.BigIntegerField(db_default=0, default=0)),
                ("failed_count", models.BigIntegerField(db_default=0, default=0)),
                ("killed_count", models.BigIntegerField(db_default=0, default=0)),
                (
                    "faulty_count",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="Rows that no job could be made of."
                    ),
                ),
                ("max_idle", models.PositiveIntegerField(db_default=2000, default=2000)),
                ("max_materialize", models.PositiveIntegerField(db_default=20000, default=20000)),
                (
                    "overrides",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="What was changed since: priority, sites, banned_sites, memory_mb.",
                    ),
                ),
                (
                    "pending_changes",
                    models.JSONField(
                        blank=True,
                        help_text="Those that jobs made before have not all got yet.",
                        null=True,
                    ),
                ),
                (
                    "pending_from",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="Jobs before this process have them."
                    ),
                ),
                (
                    "deadline",
                    models.DateTimeField(blank=True, help_text="It is removed then.", null=True),
                ),
                (
                    "look_at",
                    models.DateTimeField(
                        blank=True,
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When to look whether rows can be made.",
                        null=True,
                    ),
                ),
                (
                    "delay_reason",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="Why no rows are made at present.",
                        max_length=200,
                    ),
                ),
                ("idempotency_key", models.CharField(blank=True, max_length=128, null=True)),
                ("body_sha256", models.CharField(blank=True, db_default="", max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "accounting_group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clusters",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "description",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clusters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "previous",
                    models.ForeignKey(
                        blank=True,
                        help_text="The cluster whose failed rows it runs again.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reruns",
                        to="jobs.cluster",
                    ),
                ),
                (
                    "selection",
                    models.ForeignKey(
                        blank=True,
                        help_text="Which jobs of its tables it has, as a rerun; all without.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clusters",
                        to="jobs.workspace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "-id"], name="cluster_by_owner"),
                    models.Index(fields=["state", "-id"], name="cluster_by_state"),
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)),
                        fields=["look_at", "id"],
                        name="cluster_due",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("deadline__isnull", False), ("state__in", ["active", "held"])
                        ),
                        fields=["deadline"],
                        name="cluster_by_deadline",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "idempotency_key"), name="cluster_submitted_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["active", "held", "completed", "removed"])
                        ),
                        name="cluster_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("size__gte", 1)), name="cluster_has_jobs"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("next_process__gte", 0), ("next_process__lte", models.F("size"))
                        ),
                        name="cluster_process_in_table",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("done_count__gte", 0),
                            ("failed_count__gte", 0),
                            ("faulty_count__gte", 0),
                            ("killed_count__gte", 0),
                            (
                                "next_process__gte",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        django.db.models.expressions.CombinedExpression(
                                            models.F("done_count"), "+", models.F("failed_count")
                                        ),
                                        "+",
                                        models.F("killed_count"),
                                    ),
                                    "+",
                                    models.F("faulty_count"),
                                ),
                            ),
                        ),
                        name="cluster_counts_agree",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "completed"), _negated=True),
                            (
                                "size",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        django.db.models.expressions.CombinedExpression(
                                            models.F("done_count"), "+", models.F("failed_count")
                                        ),
                                        "+",
                                        models.F("killed_count"),
                                    ),
                                    "+",
                                    models.F("faulty_count"),
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="cluster_completed_has_ended",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "held"), _negated=True),
                            models.Q(("state_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="cluster_held_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_idle__gte", 1), ("max_materialize__gte", 1)),
                        name="cluster_limits_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClusterEvent",
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
                    "cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "somebody wanted it"),
                            ("deadline", "its deadline has passed"),
                            ("materialiser", "the materialiser could not go on with it"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="jobs.cluster",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="JobEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                ("event", models.CharField(max_length=32)),
                ("from_state", models.CharField(blank=True, max_length=16)),
                ("to_state", models.CharField(blank=True, max_length=16)),
                ("actor", models.CharField(max_length=160)),
                ("reason", models.TextField(blank=True)),
                ("facts", models.JSONField(blank=True, default=dict)),
                (
                    "cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "somebody wanted it"),
                            ("expression", "an expression of its own"),
                            ("begun_held", "it was submitted to be held"),
                            ("job_duration", "it was with a pilot for longer than it may"),
                            ("execution", "its payload ran for longer than it may"),
                            ("checkpoint", "files of its checkpoint are missing"),
                            ("payload", "its payload failed"),
                            ("inputs", "input files are missing"),
                            ("outputs", "output files did not come"),
                            ("image", "no container can be started from its image"),
                            ("unrunnable", "it cannot be run as it is described"),
                            ("unstorable", "what its pilot told of it cannot be stored"),
                            ("undefined", "its site does not define a value that it uses"),
                            ("not_run", "its pilot could not run it"),
                            ("pilot_time", "its pilot had too little time"),
                            ("preempted", "the batch system took its slot back"),
                            ("pilot_stalled", "its pilot fell silent"),
                            ("pilot_failed", "its pilot failed"),
                            ("pilot_ended", "its pilot ended"),
                            ("pilot_removed", "its pilot was removed"),
                            ("dag_held", "its DAG is held"),
                            ("dag_ended", "its DAG ends"),
                            ("dag_left", "its DAG leaves the site"),
                            ("cluster_held", "its cluster is held"),
                            ("cluster_ended", "its cluster was removed"),
                            ("node", "its node has no use for it any more"),
                            ("timeout", "the time of its node was up"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True,
                        fields=["created_at"],
                        name="jobevent_by_time",
                        pages_per_range=32,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OutputBytes",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("size_bytes", models.BigIntegerField(help_text="What came; negative: went.")),
                ("is_sum", models.BooleanField(db_default=False, default=False)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_sum", False)),
                        fields=["id"],
                        name="output_bytes_to_add",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_sum", True)),
                        fields=("cluster",),
                        name="output_bytes_one_sum",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunningLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("job_type", models.CharField(blank=True, max_length=64)),
                ("owner_group", models.CharField(blank=True, max_length=64)),
                (
                    "maximum",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Jobs with a pilot at once: matched, running or stalled.",
                        null=True,
                    ),
                ),
                (
                    "min_interval_s",
                    models.FloatField(
                        blank=True,
                        help_text="Seconds between two matches.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(86400.0),
                        ],
                    ),
                ),
                ("last_match_at", models.DateTimeField(editable=False, null=True)),
                (
                    "note",
                    models.CharField(blank=True, help_text="What it protects.", max_length=200),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="running_limits",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "ordering": ["site__name", "job_type", "owner_group"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("site", "job_type", "owner_group"),
                        name="running_limit_unique",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("maximum__isnull", False),
                            ("min_interval_s__isnull", False),
                            _connector="OR",
                        ),
                        name="running_limit_limits",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SiteScope",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "environment_template",
                    models.TextField(
                        blank=True,
                        help_text="What the environment of the DAG is before the site is known.",
                    ),
                ),
                (
                    "environment",
                    models.JSONField(
                        default=dict, help_text="What $ENV(NAME) means in the template itself."
                    ),
                ),
                (
                    "own_ad",
                    models.JSONField(
                        default=dict, help_text="The ad of the DAG: its expressions and its values."
                    ),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When its sites last changed.",
                    ),
                ),
                (
                    "sites",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="scopes",
                        to="jobs.siteset",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StoredBytes",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("owner_group", models.CharField(blank=True, db_default="", max_length=64)),
                ("size_bytes", models.BigIntegerField(help_text="What came; negative: went.")),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["owner_group"], name="stored_bytes_by_group")],
            },
        ),
        migrations.CreateModel(
            name="Stream",
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
                        choices=[("stdout", "stdout"), ("stderr", "stderr")], max_length=8
                    ),
                ),
                ("size_bytes", models.BigIntegerField(default=0)),
                (
                    "gaps",
                    models.JSONField(
                        db_default=[],
                        default=list,
                        help_text="Pairs of bytes: what is not here, from and up to.",
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="streams",
                        to="jobs.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "kind"), name="stream_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("path", models.CharField(max_length=1024)),
                (
                    "modified_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.attempt",
                    ),
                ),
                (
                    "blob",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="jobs.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["path"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "path"), name="workspace_path_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AttemptFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="jobs.attempt",
                    ),
                ),
                (
                    "blob",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("stdout", "stdout"),
                            ("stderr", "stderr"),
                            ("output", "output"),
                            ("incoming", "checkpoint under way"),
                            ("checkpoint", "checkpoint"),
                        ],
                        max_length=16,
                    ),
                ),
                ("path", models.CharField(max_length=1024)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "kind", "path"), name="attempt_file_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OutputLease",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="output_lease",
                        serialize=False,
                        to="jobs.cluster",
                    ),
                ),
                (
                    "began_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("kept_until", models.DateTimeField()),
                ("removal_began_at", models.DateTimeField(blank=True, null=True)),
                (
                    "removed_before",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Jobs before this process have none any more.",
                    ),
                ),
                ("removed_files", models.BigIntegerField(db_default=0, default=0)),
                ("removed_bytes", models.BigIntegerField(db_default=0, default=0)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=["kept_until"],
                        name="lease_not_over",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("removed_at__isnull", True),
                            ("removal_began_at__isnull", False),
                            _connector="OR",
                        ),
                        name="lease_removed_has_begun",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ClusterFault",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("process", models.BigIntegerField()),
                ("reason", models.CharField(max_length=1000)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="faults",
                        to="jobs.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["process"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "process"), name="cluster_fault_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ClusterTable",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "place",
                    models.PositiveSmallIntegerField(
                        help_text="Of the statement in the description."
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("numbers", "it has a number only"),
                            ("words", "as a whole, to the first variable"),
                            ("commas", "separated by commas"),
                            ("blanks", "separated by blanks; the last variable gets the rest"),
                            ("cells", "separated by the character 31"),
                        ],
                        max_length=8,
                    ),
                ),
                ("first_process", models.BigIntegerField()),
                ("row_count", models.BigIntegerField()),
                ("jobs_per_row", models.BigIntegerField()),
                ("items", models.JSONField(blank=True, null=True)),
                ("offsets", models.BinaryField(blank=True, null=True)),
                ("first_row", models.BigIntegerField(db_default=0, default=0)),
                ("row_step", models.BigIntegerField(db_default=1, default=1)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tables",
                        to="jobs.cluster",
                    ),
                ),
                (
                    "content",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
            ],
            options={
                "ordering": ["place"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "place"), name="cluster_table_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("content__isnull", True),
                                ("items__isnull", True),
                                ("kind", "numbers"),
                            ),
                            models.Q(
                                models.Q(("kind", "numbers"), _negated=True),
                                models.Q(
                                    models.Q(("content__isnull", True), ("items__isnull", False)),
                                    models.Q(
                                        ("content__isnull", False),
                                        ("items__isnull", True),
                                        ("offsets__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="cluster_table_stored_once",
                    ),
                ],
            },
        ),
    ]
