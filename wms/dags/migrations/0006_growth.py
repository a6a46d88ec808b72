import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("dags", "0005_idempotency_keys"),
    ]

    operations = [
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
                    ("growth", "what is to follow it cannot be inserted"),
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
                    ("growth", "what is to follow it cannot be inserted"),
                    ("dag_ended", "its DAG ends"),
                    ("dag_left", "its DAG leaves the site"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="Growth",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "number",
                    models.PositiveIntegerField(
                        help_text="Of the insertions of this DAG, from 1 on."
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("pass", "a further pass of a node"),
                            ("fragment", "a fragment that a node returned"),
                            ("hand", "a fragment that somebody added"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "path",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The copy of the fragment in the workspace; empty for a pass.",
                        max_length=1024,
                    ),
                ),
                (
                    "after",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(),
                        default=list,
                        help_text="Names of the nodes that a fragment was added behind.",
                        size=None,
                    ),
                ),
                (
                    "before",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(),
                        default=list,
                        help_text="And of those that it was added before.",
                        size=None,
                    ),
                ),
                ("first_ordinal", models.PositiveIntegerField()),
                ("node_count", models.PositiveIntegerField()),
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
                        related_name="growths",
                        to="dags.dag",
                    ),
                ),
                (
                    "node",
                    models.OneToOneField(
                        db_constraint=False,
                        help_text="The node after whose end they were inserted.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="growth",
                        to="dags.node",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("dag", "number"), name="growth_number_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["pass", "fragment", "hand"])),
                        name="growth_kind_known",
                    ),
                ],
            },
        ),
    ]
