import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0001_schema"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0002_descriptions"),
    ]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="state_cause",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="jobevent",
            name="cause",
            field=models.CharField(
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
