import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sites", "0001_schema"),
    ]

    operations = [
        migrations.CreateModel(
            name="Blob",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("size_bytes", models.BigIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
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
                            ("expression", "an expression of its own"),
                            ("payload", "its payload failed"),
                            ("inputs", "input files are missing"),
                            ("outputs", "output files did not come"),
                            ("unrunnable", "it cannot be run as it is described"),
                            ("unstorable", "what its pilot told of it cannot be stored"),
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
                            ("node", "its node has no use for it any more"),
                            ("timeout", "the time of its node was up"),
                        ],
                        db_default="",
                        default="",
                        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                        max_length=16,
                    ),
                ),
                ("executable", models.CharField(max_length=1024)),
                (
                    "arguments",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                ("environment", models.JSONField(default=dict)),
                (
                    "input_files",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), default=list, size=None
                    ),
                ),
                (
                    "output_files",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), default=list, size=None
                    ),
                ),
                (
                    "stdout_name",
                    models.CharField(
                        blank=True, help_text="Name in the workspace.", max_length=1024
                    ),
                ),
                (
                    "stderr_name",
                    models.CharField(
                        blank=True, help_text="Name in the workspace.", max_length=1024
                    ),
                ),
                ("needs", models.JSONField()),
                (
                    "priority",
                    models.PositiveSmallIntegerField(
                        db_default=1,
                        default=1,
                        help_text="From 0 to 10: how much more likely it is drawn than others of its TaskQueue.",
                    ),
                ),
                (
                    "attributes",
                    models.JSONField(
                        default=dict, help_text="Other keys of the submit description."
                    ),
                ),
                ("wall_limit_s", models.PositiveIntegerField()),
                ("max_attempts", models.PositiveSmallIntegerField(default=5)),
                (
                    "attempt_number",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="The latest attempt; 0 before the first."
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
                    "process",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Its place in the cluster, from 0."
                    ),
                ),
                (
                    "max_retries",
                    models.PositiveSmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="So often a payload that failed is run again.",
                    ),
                ),
                ("payload_failures", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("hold_count", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "periodic",
                    models.JSONField(
                        blank=True,
                        help_text="Expressions by what they do: hold, release, remove, retry.",
                        null=True,
                    ),
                ),
                ("request_disk_mb", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "directory",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Where in the workspace its files have their names; not the executable.",
                        max_length=1024,
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        help_text="A job that was rescheduled joins no TaskQueue before.", null=True
                    ),
                ),
                (
                    "avoided_hosts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(),
                        blank=True,
                        db_default=models.Value([]),
                        default=list,
                        help_text="Worker nodes that have failed it, which it leaves to others for a while.",
                        size=None,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["state", "id"], name="job_by_state"),
                    models.Index(
                        condition=models.Q(("not_before__isnull", False), ("state", "received")),
                        fields=["not_before"],
                        name="job_rescheduled",
                    ),
                    models.Index(fields=["topic", "topic_key", "state"], name="job_by_topic"),
                    models.Index(
                        condition=models.Q(("cluster_id", 0), _negated=True),
                        fields=["cluster_id", "process"],
                        name="job_by_cluster",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("periodic__isnull", False),
                            models.Q(("state__in", ["done", "failed", "killed"]), _negated=True),
                        ),
                        fields=["id"],
                        name="job_with_periodic",
                    ),
                    models.Index(fields=["owner", "state", "id"], name="job_by_owner"),
                    models.Index(
                        condition=models.Q(("site_name", ""), _negated=True),
                        fields=["site_name", "state", "id"],
                        name="job_by_site",
                    ),
                    models.Index(fields=["created_at"], name="job_by_time"),
                    models.Index(fields=["state", "state_since", "id"], name="job_by_last_change"),
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
                ("number", models.PositiveSmallIntegerField()),
                ("pilot_id", models.BigIntegerField(db_index=True)),
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
                    "cores",
                    models.PositiveIntegerField(
                        db_default=1, help_text="What it may use of its pilot."
                    ),
                ),
                ("memory_mb", models.PositiveIntegerField(db_default=0)),
                ("gpus", models.PositiveIntegerField(db_default=0)),
                (
                    "matched_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
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
                ("exit_code", models.IntegerField(null=True)),
                ("signal", models.IntegerField(null=True)),
                ("wall_s", models.FloatField(null=True)),
                ("cpu_s", models.FloatField(null=True)),
                ("max_rss_mb", models.FloatField(null=True)),
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
                        help_text="What it used, by its latest heartbeat or its report.", null=True
                    ),
                ),
                (
                    "peek_until",
                    models.DateTimeField(
                        help_text="Until then its pilot is asked for what it has printed.",
                        null=True,
                    ),
                ),
                (
                    "is_accounted",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Its core-seconds are in the accounts.",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="jobs.job",
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
                    models.Index(
                        condition=models.Q(
                            ("is_accounted", False), models.Q(("outcome", ""), _negated=True)
                        ),
                        fields=["id"],
                        name="attempt_to_be_accounted",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "number"), name="attempt_number_unique"),
                    models.UniqueConstraint(
                        condition=models.Q(("outcome", "done")),
                        fields=("job",),
                        name="job_done_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("outcome", "")),
                        fields=("job",),
                        name="job_has_one_open_attempt",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim_key", ""), _negated=True),
                        fields=("pilot_id", "claim_key"),
                        name="claim_key_used_once",
                    ),
                ],
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
                            ("expression", "an expression of its own"),
                            ("payload", "its payload failed"),
                            ("inputs", "input files are missing"),
                            ("outputs", "output files did not come"),
                            ("unrunnable", "it cannot be run as it is described"),
                            ("unstorable", "what its pilot told of it cannot be stored"),
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
                            ("node", "its node has no use for it any more"),
                            ("timeout", "the time of its node was up"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["job", "id"], name="jobevent_by_job"),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True,
                        fields=["created_at"],
                        name="jobevent_by_time",
                        pages_per_range=32,
                    ),
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
            name="Workspace",
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
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="job",
            name="workspace",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="jobs",
                to="jobs.workspace",
            ),
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
                    "kind",
                    models.CharField(
                        choices=[("stdout", "stdout"), ("stderr", "stderr"), ("output", "output")],
                        max_length=8,
                    ),
                ),
                ("path", models.CharField(max_length=1024)),
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "kind", "path"), name="attempt_file_unique"
                    )
                ],
            },
        ),
    ]
