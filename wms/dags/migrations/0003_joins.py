import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("dags", "0002_trials"),
        ("jobs", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Condition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("expression", models.TextField(help_text="In ClassAd language.")),
                (
                    "holds",
                    models.BooleanField(help_text="Empty until the parent has ended.", null=True),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it does or not."
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Join",
            fields=[
                (
                    "node",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="join",
                        serialize=False,
                        to="dags.node",
                    ),
                ),
                (
                    "needed_count",
                    models.PositiveIntegerField(help_text="So many arcs have to hold."),
                ),
                ("arc_count", models.PositiveIntegerField()),
                ("held_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("ruled_out_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("lost_count", models.PositiveIntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="node",
            name="node_state_known",
        ),
        migrations.AddField(
            model_name="dag",
            name="has_joins",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Arcs of it have conditions, or nodes of it need not all of their arcs.",
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="skipped_count",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="edge",
            name="is_joined",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="The child has a `Join`, in which it counts, and not among unfinished parents.",
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="state",
            field=models.CharField(
                choices=[
                    ("waiting", "waiting"),
                    ("ready", "ready"),
                    ("pre_running", "PRE script"),
                    ("submitted", "submitted"),
                    ("post_running", "POST script"),
                    ("done", "done"),
                    ("failed", "failed"),
                    ("futile", "futile"),
                    ("skipped", "skipped"),
                ],
                default="waiting",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="state_cause",
            field=models.CharField(
                blank=True,
                choices=[
                    ("person", "somebody wanted it"),
                    ("job", "its jobs"),
                    ("script", "its PRE or POST script"),
                    ("inner_dag", "its inner DAG"),
                    ("request", "its placement request"),
                    ("submission", "it cannot be submitted"),
                    ("ancestor", "an ancestor failed"),
                    ("condition", "too few of its arcs hold"),
                    ("dag_ended", "its DAG ends"),
                    ("dag_left", "its DAG leaves the site"),
                ],
                db_default="",
                default="",
                help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="nodeevent",
            name="cause",
            field=models.CharField(
                blank=True,
                choices=[
                    ("person", "somebody wanted it"),
                    ("job", "its jobs"),
                    ("script", "its PRE or POST script"),
                    ("inner_dag", "its inner DAG"),
                    ("request", "its placement request"),
                    ("submission", "it cannot be submitted"),
                    ("ancestor", "an ancestor failed"),
                    ("condition", "too few of its arcs hold"),
                    ("dag_ended", "its DAG ends"),
                    ("dag_left", "its DAG leaves the site"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
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
                            "skipped",
                        ],
                    )
                ),
                name="node_state_known",
            ),
        ),
        migrations.AddField(
            model_name="condition",
            name="child",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="conditions",
                to="dags.node",
            ),
        ),
        migrations.AddField(
            model_name="condition",
            name="parent",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="dags.node",
            ),
        ),
        migrations.AddConstraint(
            model_name="join",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "arc_count__gte",
                        django.db.models.expressions.CombinedExpression(
                            django.db.models.expressions.CombinedExpression(
                                models.F("held_count"), "+", models.F("ruled_out_count")
                            ),
                            "+",
                            models.F("lost_count"),
                        ),
                    )
                ),
                name="join_counts_each_arc_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="condition",
            constraint=models.UniqueConstraint(fields=("parent", "child"), name="condition_unique"),
        ),
    ]
