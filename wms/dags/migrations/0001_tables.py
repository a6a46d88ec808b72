import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [
        ("dags", "0001_schema"),
        ("dags", "0002_groups_of_workspaces"),
        ("dags", "0003_half_life_of_shares"),
        ("dags", "0004_binding"),
        ("dags", "0005_narrower"),
        ("dags", "0006_left_clusters"),
        ("dags", "0007_key_of_node_events"),
        ("dags", "0008_nodes_by_job"),
        ("dags", "0009_needs_of_nodes"),
        ("dags", "0010_changed_descriptions"),
    ]

    initial = True

    dependencies = [
        ("accounting", "0002_links"),
        ("core", "__first__"),
        ("jobs", "0001_tables"),
        ("placement", "0001_tables"),
        ("sites", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="NegotiationCycle",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("started_at", models.DateTimeField(db_index=True)),
                ("publish_s", models.FloatField()),
                ("read_s", models.FloatField()),
                ("decide_s", models.FloatField()),
                ("carry_out_s", models.FloatField()),
                ("ads", models.PositiveIntegerField()),
                ("requests", models.PositiveIntegerField()),
                ("autoclusters", models.PositiveIntegerField()),
                ("matches", models.PositiveIntegerField()),
                ("bound", models.PositiveIntegerField()),
                (
                    "reasons",
                    models.JSONField(
                        default=dict, help_text="DAGs left over, by the kind of reason."
                    ),
                ),
                (
                    "left_over",
                    models.JSONField(
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text="The most frequent reasons in full, with some of their DAGs; kept for a day.",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Dag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "dag_files",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(),
                        db_default=models.Value(
                            [],
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="The DAG files in the workspace; more than one run as one DAG.",
                        size=None,
                    ),
                ),
                (
                    "directory",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="Where in the workspace it runs.",
                        max_length=1024,
                    ),
                ),
                (
                    "root_path",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="The absolute path that the workspace's top had where its files come from.",
                        max_length=1000,
                    ),
                ),
                (
                    "uses_dag_dir",
                    models.BooleanField(
                        db_default=False,
                        help_text="Names are looked up in the folder of each DAG file.",
                    ),
                ),
                (
                    "rescue_number",
                    models.PositiveSmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The rescue that this run began from; 0 for none.",
                    ),
                ),
                ("idempotency_key", models.CharField(blank=True, max_length=128, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("idle", "idle"),
                            ("running", "running"),
                            ("held", "held"),
                            ("halted", "halted"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("removed", "removed"),
                        ],
                        default="idle",
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
                            ("outer_dag", "it was done to the DAG around it"),
                            ("engine", "the engine cannot go on with it"),
                            ("ad", "its ad or environment cannot be made"),
                            ("submission", "a node of it cannot be submitted"),
                            ("policy", "the policy for rematches"),
                            ("log", "the log that it follows makes no sense"),
                            ("node_failed", "nodes failed"),
                            ("aborted", "ABORT-DAG-ON"),
                            ("removed", "it was removed"),
                            ("halted", "it was halted and is drained"),
                        ],
                        db_default="",
                        default="",
                        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                        max_length=16,
                    ),
                ),
                (
                    "ad_attributes",
                    models.JSONField(
                        default=dict,
                        help_text="Expressions of the DAG's own ad by name, Requirements and Rank among them.",
                    ),
                ),
                (
                    "environment_template",
                    models.TextField(
                        default="$$(SiteEnvironment:)",
                        help_text="The DAG's environment before the match.",
                    ),
                ),
                (
                    "binding",
                    models.CharField(
                        choices=[
                            ("site", "the DAG, by the negotiation"),
                            ("job", "each job, by the claim of a pilot"),
                        ],
                        db_default="site",
                        default="site",
                        help_text="What is bound to a site: the DAG, or each job at its claim.",
                        max_length=8,
                    ),
                ),
                (
                    "matched_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Since when it may run, at its site or at those it has.",
                        null=True,
                    ),
                ),
                (
                    "match_attributes",
                    models.JSONField(
                        default=dict, help_text="The site's ad at the time of the match."
                    ),
                ),
                (
                    "environment",
                    models.JSONField(default=dict, help_text="What $ENV(NAME) means in the nodes."),
                ),
                (
                    "substitutions",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="What $$(...) stood for in the environment, as MATCH_<Attr>.",
                    ),
                ),
                (
                    "concurrency_limits",
                    models.JSONField(
                        default=dict,
                        help_text="How much of each limit the DAG takes while it runs, by name.",
                    ),
                ),
                (
                    "node_needs",
                    models.JSONField(
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                        help_text="What its nodes need, as far as it was known at the submission: the largest needs, what differs from the defaults of each.",
                    ),
                ),
                (
                    "need_nodes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(),
                        db_default=models.Value(
                            [],
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="The name of one node that has it, for each of these needs.",
                        size=None,
                    ),
                ),
                (
                    "rematch_expression",
                    models.TextField(
                        blank=True,
                        help_text="When true for a running DAG, its match is taken back.",
                    ),
                ),
                ("rematch_count", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "policy_rematch_count",
                    models.PositiveSmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Rematches by policy since a person last rematched or released the DAG.",
                    ),
                ),
                (
                    "looked_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When a negotiation that could not look at all DAGs looked at this one.",
                        null=True,
                    ),
                ),
                (
                    "unmatched_reason",
                    models.TextField(
                        blank=True, help_text="Why the last negotiation found no site."
                    ),
                ),
                (
                    "unmatched_kind",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="The same in a kind that is counted.",
                        max_length=40,
                    ),
                ),
                (
                    "options",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="How the run is driven: what of RunOptions differs from its defaults.",
                    ),
                ),
                (
                    "category_limits",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="MAXJOBS by category.",
                    ),
                ),
                (
                    "category_counts",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="Submitted nodes by category.",
                    ),
                ),
                (
                    "script_environment",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="ENV SET.",
                    ),
                ),
                (
                    "exports",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="Names of the files that the DAG file asks for: status, jobstate, dot.",
                    ),
                ),
                (
                    "is_followed",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Somebody's HTCondor runs it: nothing of it is submitted, its log is read.",
                    ),
                ),
                (
                    "round_number",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The engine's last round: the order of the ready queue.",
                    ),
                ),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (0, "OK"),
                            (1, "engine error"),
                            (2, "node failed"),
                            (3, "aborted"),
                            (4, "removed"),
                            (5, "cycle"),
                            (6, "halted"),
                        ],
                        db_default=0,
                        default=0,
                    ),
                ),
                ("exit_code", models.SmallIntegerField(blank=True, null=True)),
                (
                    "ending_event",
                    models.CharField(
                        blank=True,
                        choices=[("complete", "complete"), ("fail", "fail"), ("remove", "remove")],
                        db_default="",
                        default="",
                        help_text="How the DAG ends, once that is known, while its FINAL node runs.",
                        max_length=8,
                    ),
                ),
                (
                    "ending_status",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (0, "OK"),
                            (1, "engine error"),
                            (2, "node failed"),
                            (3, "aborted"),
                            (4, "removed"),
                            (5, "cycle"),
                            (6, "halted"),
                        ],
                        db_default=0,
                        default=0,
                    ),
                ),
                ("ending_code", models.SmallIntegerField(db_default=0, default=0)),
                ("ending_reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "ending_rescue",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="The number of the rescue that was written for this end.",
                        null=True,
                    ),
                ),
                ("node_count", models.PositiveIntegerField(default=0)),
                ("done_count", models.PositiveIntegerField(default=0)),
                ("failed_count", models.PositiveIntegerField(default=0)),
                ("futile_count", models.PositiveIntegerField(default=0)),
                ("submitted_count", models.PositiveIntegerField(default=0)),
                ("ready_count", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "accounting_group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dags",
                        to="accounting.accountinggroup",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dags",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "previous_run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="next_runs",
                        to="dags.dag",
                    ),
                ),
                (
                    "root",
                    models.ForeignKey(
                        blank=True,
                        help_text="The outermost DAG, if this is an inner one.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tree",
                        to="dags.dag",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dags",
                        to="sites.site",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dags",
                        to="jobs.workspace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["state", "id"], name="dag_by_state"),
                    models.Index(fields=["site", "state"], name="dag_by_site_and_state"),
                    models.Index(
                        condition=models.Q(("looked_at__isnull", False)),
                        fields=["looked_at"],
                        name="dag_looked_at",
                    ),
                    models.Index(
                        condition=models.Q(("ready_count__gt", 0), ("state", "running")),
                        fields=["owner", "site"],
                        name="dag_with_ready_nodes",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "idle",
                                    "running",
                                    "held",
                                    "halted",
                                    "completed",
                                    "failed",
                                    "removed",
                                ],
                            )
                        ),
                        name="dag_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "running"), _negated=True),
                            ("site__isnull", False),
                            models.Q(("binding", "job"), ("matched_at__isnull", False)),
                            ("is_followed", True),
                            _connector="OR",
                        ),
                        name="dag_running_has_site",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("binding", "site"),
                            models.Q(
                                ("binding", "job"), ("is_followed", False), ("site__isnull", True)
                            ),
                            _connector="OR",
                        ),
                        name="dag_binding_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "held"), _negated=True),
                            models.Q(("state_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="dag_held_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ending_event__in", ["", "complete", "fail", "remove"])
                        ),
                        name="dag_ending_known",
                    ),
                    models.UniqueConstraint(
                        fields=("owner", "idempotency_key"), name="dag_submitted_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FollowedLog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="Where the log lies, for people.", max_length=1024),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC",
                        help_text="Of times in the log that do not tell theirs.",
                        max_length=64,
                    ),
                ),
                (
                    "allow_events",
                    models.PositiveSmallIntegerField(
                        help_text="Bad events that are no error, as in DAGMAN_ALLOW_EVENTS."
                    ),
                ),
                (
                    "byte_offset",
                    models.BigIntegerField(
                        default=0, help_text="Behind the last complete event that was taken in."
                    ),
                ),
                ("event_count", models.PositiveBigIntegerField(default=0)),
                ("warning_count", models.PositiveIntegerField(default=0)),
                ("warnings", models.JSONField(default=list, help_text="The latest ones.")),
                ("fault", models.TextField(blank=True, help_text="Why nothing more is taken in.")),
                ("last_event_at", models.DateTimeField(blank=True, null=True)),
                ("taken_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "dag",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followed_log",
                        to="dags.dag",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="MatchmakingPolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "rematch_expression",
                    models.TextField(
                        blank=True,
                        help_text="ClassAd expression over a running DAG's figures; when true, its match is taken back. For DAGs without their own.",
                    ),
                ),
                (
                    "max_rematches",
                    models.PositiveSmallIntegerField(
                        default=5,
                        help_text="After so many rematches by policy a DAG is held instead.",
                    ),
                ),
                (
                    "avoid_s",
                    models.PositiveIntegerField(
                        default=3600,
                        help_text="So long a DAG does not go back to a site that it was taken from.",
                    ),
                ),
                (
                    "priority_half_life_s",
                    models.PositiveIntegerField(
                        default=86400,
                        help_text="After this time used slots count half in a submitter's priority, and in the correction of shares of TaskQueues.",
                        validators=[django.core.validators.MinValueValidator(60)],
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "matchmaking policy",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("pk", 1)), name="one_matchmaking_policy"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SubmitDescription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=1024)),
                (
                    "content",
                    models.JSONField(help_text="Commands and attributes, macros not yet expanded."),
                ),
                (
                    "sha256",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Of the file that it was read from; empty where it stands in the DAG file.",
                        max_length=64,
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="submit_descriptions",
                        to="dags.dag",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("dag", "name"), name="submit_description_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Node",
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
                (
                    "ready_rank",
                    models.BigIntegerField(
                        help_text="Place in the ready queue among equal priorities, while it is ready.",
                        null=True,
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="nodes",
                        to="dags.dag",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="The first job of its latest cluster.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="nodes",
                        to="jobs.job",
                    ),
                ),
                (
                    "submit_description",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="Empty while its file is not there, and for nodes that run something else.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="nodes",
                        to="dags.submitdescription",
                    ),
                ),
                ("ordinal", models.PositiveIntegerField(help_text="Place in the DAG file.")),
                ("priority", models.IntegerField(db_default=0, default=0)),
                ("unfinished_parents", models.PositiveIntegerField(default=0)),
                ("max_retries", models.PositiveIntegerField(default=0)),
                ("retry_number", models.PositiveIntegerField(default=0)),
                (
                    "is_plain",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="All that becomes of it follows from its one job's end: see engine.node_work.",
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("job", "job"),
                            ("subdag", "sub-DAG"),
                            ("data", "data placement"),
                            ("final", "final node"),
                            ("service", "service"),
                            ("provisioner", "provisioner"),
                        ],
                        db_default="job",
                        default="job",
                        max_length=12,
                    ),
                ),
                (
                    "directory",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="Where in the workspace it runs.",
                        max_length=1024,
                    ),
                ),
                (
                    "variables",
                    models.JSONField(
                        default=dict,
                        help_text="VARS of the node that stand before its description.",
                    ),
                ),
                ("features", models.JSONField(blank=True, null=True)),
                ("category", models.CharField(blank=True, db_default="", max_length=255)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("ready", "ready"),
                            ("pre_running", "PRE script"),
                            ("submitted", "submitted"),
                            ("post_running", "POST script"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("futile", "futile"),
                        ],
                        default="waiting",
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
                            ("job", "its jobs"),
                            ("script", "its PRE or POST script"),
                            ("inner_dag", "its inner DAG"),
                            ("request", "its placement request"),
                            ("submission", "it cannot be submitted"),
                            ("ancestor", "an ancestor failed"),
                            ("dag_ended", "its DAG ends"),
                            ("dag_left", "its DAG leaves the site"),
                        ],
                        db_default="",
                        default="",
                        help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                        max_length=16,
                    ),
                ),
            ],
            options={
                "ordering": ["ordinal"],
                "indexes": [
                    models.Index(fields=["dag", "ordinal"], name="node_by_dag_and_place"),
                    models.Index(
                        condition=models.Q(("ready_rank__isnull", False)),
                        fields=["dag", "-priority", "ready_rank", "ordinal"],
                        name="node_ready_queue",
                    ),
                    models.Index(
                        condition=models.Q(("job__isnull", False)),
                        fields=["job"],
                        name="node_by_job",
                    ),
                    models.Index(
                        condition=models.Q(("kind__in", ["final", "service", "provisioner"])),
                        fields=["dag", "kind"],
                        name="node_beside_others",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dag", "name"), name="node_name_unique"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "waiting",
                                    "ready",
                                    "pre_running",
                                    "submitted",
                                    "post_running",
                                    "done",
                                    "failed",
                                    "futile",
                                ],
                            )
                        ),
                        name="node_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LeftCluster",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        help_text="The first job, as in the node.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        help_text="The outermost one.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="left_clusters",
                        to="dags.dag",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        help_text="The site that was left; none if each job is bound at its claim.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="sites.site",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="dags.node",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FollowedCluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.BigIntegerField()),
                ("part", models.BigIntegerField(default=0)),
                ("submitted", models.PositiveIntegerField(default=0)),
                ("running", models.PositiveIntegerField(default=0)),
                ("held", models.PositiveIntegerField(default=0)),
                ("ended", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                (
                    "code",
                    models.IntegerField(default=0, help_text="Of the first process that failed."),
                ),
                ("reason", models.TextField(blank=True)),
                (
                    "is_growing",
                    models.BooleanField(default=False, help_text="More of its jobs may be made."),
                ),
                (
                    "is_closed",
                    models.BooleanField(default=False, help_text="Its node has gone on."),
                ),
                (
                    "log",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="clusters",
                        to="dags.followedlog",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followed_clusters",
                        to="dags.node",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("log", "cluster", "part"), name="followed_cluster_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Edge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_weak", models.BooleanField(db_default=False, default=False)),
                (
                    "child",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parent_edges",
                        to="dags.node",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="child_edges",
                        to="dags.node",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("parent", "child"), name="edge_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="NodeEvent",
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
                    "dag",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="node_events",
                        to="dags.dag",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="dags.node",
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
                            ("job", "its jobs"),
                            ("script", "its PRE or POST script"),
                            ("inner_dag", "its inner DAG"),
                            ("request", "its placement request"),
                            ("submission", "it cannot be submitted"),
                            ("ancestor", "an ancestor failed"),
                            ("dag_ended", "its DAG ends"),
                            ("dag_left", "its DAG leaves the site"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["node"], name="nodeevent_by_node"),
                    models.Index(
                        condition=models.Q(("event__in", ["fail", "retry"])),
                        fields=["dag", "created_at"],
                        name="nodeevent_failures",
                    ),
                    models.Index(
                        condition=models.Q(("event__in", ["fail", "retry"])),
                        fields=["id"],
                        name="nodeevent_announced",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("dag", "id"), name="nodeevent_by_dag")
                ],
            },
        ),
        migrations.CreateModel(
            name="NodeTimer",
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
                        choices=[("queue", "in the queue"), ("run", "running")], max_length=5
                    ),
                ),
                ("retry_number", models.PositiveIntegerField(help_text="Of the node's attempt.")),
                ("limit_s", models.PositiveIntegerField()),
                ("due_at", models.DateTimeField(db_index=True)),
                (
                    "dag",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="dags.dag",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="timers",
                        to="dags.node",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["dag", "due_at"], name="timer_by_dag")],
            },
        ),
        migrations.CreateModel(
            name="Rescue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "dag_file",
                    models.CharField(
                        help_text="Whose progress it is, in the workspace.", max_length=1024
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("rescue", "rescue"), ("save", "save point")],
                        default="rescue",
                        max_length=6,
                    ),
                ),
                ("number", models.PositiveSmallIntegerField(help_text="0 for save points.")),
                ("path", models.CharField(help_text="The file in the workspace.", max_length=1024)),
                ("done_count", models.PositiveIntegerField()),
                ("failed_count", models.PositiveIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
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
                    "dag",
                    models.ForeignKey(
                        help_text="Who wrote it.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="rescues",
                        to="dags.dag",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rescues",
                        to="jobs.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["workspace", "dag_file", "number"], name="rescue_by_file")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "path"), name="rescue_path_unique")
                ],
            },
        ),
        migrations.CreateModel(
            name="ScriptRun",
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
                        choices=[("pre", "PRE"), ("post", "POST"), ("hold", "HOLD")], max_length=4
                    ),
                ),
                ("retry_number", models.PositiveIntegerField(help_text="Of the node's attempt.")),
                (
                    "run_number",
                    models.PositiveIntegerField(default=0, help_text="0, and more after DEFER."),
                ),
                ("executable", models.CharField(max_length=1024)),
                (
                    "arguments",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                ("directory", models.CharField(blank=True, max_length=1024)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting for its turn"),
                            ("granted", "granted"),
                            ("running", "running"),
                            ("ended", "ended"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("due_at", models.DateTimeField(help_text="Not before this time.", null=True)),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "lease",
                    models.CharField(
                        blank=True, help_text="Of the service that runs it.", max_length=64
                    ),
                ),
                ("lease_until", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "exit_code",
                    models.IntegerField(
                        help_text="Of its end; minus the signal's number. 1 if it could not be started.",
                        null=True,
                    ),
                ),
                (
                    "failure",
                    models.TextField(
                        blank=True, help_text="Why it could not be started, or was ended."
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="script_runs",
                        to="dags.dag",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="script_runs",
                        to="dags.node",
                    ),
                ),
                (
                    "output",
                    models.ForeignKey(
                        help_text="stdout and stderr.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="jobs.blob",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["node", "id"], name="script_by_node"),
                    models.Index(
                        condition=models.Q(("state", "ended"), _negated=True),
                        fields=["dag", "kind", "state", "id"],
                        name="script_not_ended",
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ["granted", "running"])),
                        fields=["state", "id"],
                        name="script_for_the_service",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            models.Q(("state", "ended"), _negated=True),
                            models.Q(("kind", "hold"), _negated=True),
                        ),
                        fields=("node",),
                        name="node_has_one_script_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "granted", "running", "ended"])
                        ),
                        name="script_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "ended"), _negated=True),
                            ("exit_code__isnull", False),
                            _connector="OR",
                        ),
                        name="script_ended_has_code",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SharedLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("category", models.CharField(blank=True, max_length=255)),
                (
                    "max_jobs",
                    models.PositiveIntegerField(
                        help_text="Nodes submitted at once; 0 lets none be."
                    ),
                ),
                (
                    "note",
                    models.CharField(blank=True, help_text="What it protects.", max_length=200),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dag_limits",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dag_limits",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "site", "category"),
                        name="shared_limit_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DagEvent",
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
                            ("outer_dag", "it was done to the DAG around it"),
                            ("engine", "the engine cannot go on with it"),
                            ("ad", "its ad or environment cannot be made"),
                            ("submission", "a node of it cannot be submitted"),
                            ("policy", "the policy for rematches"),
                            ("log", "the log that it follows makes no sense"),
                            ("node_failed", "nodes failed"),
                            ("aborted", "ABORT-DAG-ON"),
                            ("removed", "it was removed"),
                            ("halted", "it was halted and is drained"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="dags.dag",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["dag", "id"], name="dagevent_by_dag")],
            },
        ),
        migrations.CreateModel(
            name="FollowedProcess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("process", models.BigIntegerField()),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("idle", "idle"),
                            ("running", "running"),
                            ("held", "held"),
                            ("ended", "ended"),
                        ],
                        default="idle",
                        max_length=7,
                    ),
                ),
                ("submits", models.PositiveIntegerField(default=0)),
                ("executes", models.PositiveIntegerField(default=0)),
                ("ends", models.PositiveIntegerField(default=0)),
                ("aborts", models.PositiveIntegerField(default=0)),
                ("posts", models.PositiveIntegerField(default=0)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="processes",
                        to="dags.followedcluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "process"), name="followed_process_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("phase__in", ["idle", "running", "held", "ended"])),
                        name="followed_process_phase_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MatchRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("matched_at", models.DateTimeField()),
                ("dag_rank", models.FloatField(default=0.0)),
                ("site_rank", models.FloatField(default=0.0)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "end",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("complete", "completed"),
                            ("fail", "failed"),
                            ("remove", "removed"),
                            ("hold", "held before it began"),
                            ("unfit", "no queue could run it"),
                            ("rematch", "rematched by hand"),
                            ("policy", "rematched by policy"),
                        ],
                        max_length=32,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                (
                    "avoided_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="The DAG does not come back before this time.",
                        null=True,
                    ),
                ),
                (
                    "dag",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="matches",
                        to="dags.dag",
                    ),
                ),
                (
                    "site",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="matches",
                        to="sites.site",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["dag", "-matched_at"], name="match_by_dag"),
                    models.Index(fields=["matched_at"], name="match_by_time"),
                    models.Index(fields=["site", "ended_at"], name="match_by_site_and_end"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("dag",),
                        name="dag_has_one_open_match",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="NodeWork",
            fields=[
                (
                    "node",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="work",
                        serialize=False,
                        to="dags.node",
                    ),
                ),
                (
                    "inner_dag",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="The DAG inside of it.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="dags.dag",
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="The placement that it runs.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="placement.placementrequest",
                    ),
                ),
                (
                    "pre_code",
                    models.IntegerField(help_text="What PRE gave in this attempt.", null=True),
                ),
                (
                    "job_count",
                    models.PositiveIntegerField(default=1, help_text="Of its list of jobs."),
                ),
                (
                    "jobs_left",
                    models.PositiveIntegerField(default=1, help_text="That have not ended."),
                ),
                ("jobs_failed", models.PositiveIntegerField(default=0)),
                (
                    "failure_code",
                    models.IntegerField(help_text="Of the first job that failed.", null=True),
                ),
                (
                    "hold_count",
                    models.PositiveIntegerField(
                        default=0, help_text="How often its jobs were held."
                    ),
                ),
                (
                    "is_provisioned",
                    models.BooleanField(
                        default=False, help_text="A provisioner that has said that it is ready."
                    ),
                ),
                (
                    "is_fresh",
                    models.BooleanField(
                        default=False, help_text="Its inner DAG begins anew, and from no rescue."
                    ),
                ),
                ("failure_reason", models.TextField(blank=True, default="")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("request__isnull", False)),
                        fields=["request"],
                        name="node_by_request",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("inner_dag", None), ("request", None), _connector="OR"),
                        name="node_runs_one_thing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("jobs_left__lte", models.F("job_count"))),
                        name="node_has_no_more_jobs_left_than_all",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="dag",
            name="parent_node",
            field=models.ForeignKey(
                blank=True,
                help_text="The node of an outer DAG that this one is a run of.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="inner_dags",
                to="dags.node",
            ),
        ),
        migrations.AddIndex(
            model_name="dag",
            index=models.Index(
                condition=models.Q(("binding", "job"), ("parent_node", None)),
                fields=["state", "id"],
                name="dag_bound_by_job",
            ),
        ),
        # Its key is that of its DAG and id: an index of the ids alone is 67 bytes a node.
        migrations.RunSQL(
            "ALTER TABLE dags_nodeevent DROP CONSTRAINT dags_nodeevent_pkey",
            "ALTER TABLE dags_nodeevent ADD CONSTRAINT dags_nodeevent_pkey PRIMARY KEY (id)",
        ),
        migrations.RunSQL(
            "ALTER TABLE dags_node SET (fillfactor = 70)",
            "ALTER TABLE dags_node RESET (fillfactor)",
        ),
    ]
