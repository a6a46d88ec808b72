from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("dags", "0003_joins"),
        ("jobs", "0002_triggers_and_view"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="node",
            name="node_beside_others",
        ),
        migrations.AddField(
            model_name="dag",
            name="ending_cause",
            field=models.CharField(
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
                    ("tolerated", "nodes failed, which it tolerates"),
                    ("aborted", "ABORT-DAG-ON"),
                    ("removed", "it was removed"),
                    ("halted", "it was halted and is drained"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="success_rule",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="The expression of SUCCESS WHEN."
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="tolerances",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="TOLERANCE by category: as it was given, and how many nodes that is.",
            ),
        ),
        migrations.AddField(
            model_name="nodework",
            name="is_tolerated",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="It failed, and its category tolerates that: its children go on.",
            ),
        ),
        migrations.AddField(
            model_name="nodework",
            name="waits_since",
            field=models.DateTimeField(
                help_text="When a gate began to wait for a person, or for its time.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="dag",
            name="category_counts",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="Submitted nodes by category, and failed ones that are tolerated.",
            ),
        ),
        migrations.AlterField(
            model_name="dag",
            name="state_cause",
            field=models.CharField(
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
                    ("tolerated", "nodes failed, which it tolerates"),
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
        migrations.AlterField(
            model_name="dagevent",
            name="cause",
            field=models.CharField(
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
                    ("tolerated", "nodes failed, which it tolerates"),
                    ("aborted", "ABORT-DAG-ON"),
                    ("removed", "it was removed"),
                    ("halted", "it was halted and is drained"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="kind",
            field=models.CharField(
                choices=[
                    ("job", "job"),
                    ("subdag", "sub-DAG"),
                    ("data", "data placement"),
                    ("gate", "gate"),
                    ("final", "final node"),
                    ("service", "service"),
                    ("provisioner", "provisioner"),
                ],
                db_default="job",
                default="job",
                max_length=12,
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
                    ("gate", "its gate waits, or its time came"),
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
                    ("gate", "its gate waits, or its time came"),
                    ("dag_ended", "its DAG ends"),
                    ("dag_left", "its DAG leaves the site"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="nodetimer",
            name="kind",
            field=models.CharField(
                choices=[("queue", "in the queue"), ("run", "running"), ("gate", "of a gate")],
                max_length=5,
            ),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                condition=models.Q(("kind__in", ["final", "service", "provisioner", "gate"])),
                fields=["dag", "kind"],
                name="node_rare_kinds",
            ),
        ),
    ]
