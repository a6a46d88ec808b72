import django.db.models.deletion
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("dags", "0007_labels_and_priority"),
        ("jobs", "0006_input_sets"),
    ]

    operations = [
        migrations.AddField(
            model_name="dag",
            name="far_inputs",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="Those that its nodes may fetch from afar: sites near most of them first.",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="jobs.inputset",
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="input_node",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="The name of one node that has any.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="near_inputs",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="Input data of its nodes, as far as they were known: sites near all of them.",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="jobs.inputset",
            ),
        ),
        migrations.AddIndex(
            model_name="dag",
            index=models.Index(
                condition=models.Q(("near_inputs__isnull", False), ("ended_at", None)),
                fields=["near_inputs"],
                name="open_dag_by_near_inputs",
            ),
        ),
        migrations.AddIndex(
            model_name="dag",
            index=models.Index(
                condition=models.Q(("far_inputs__isnull", False), ("ended_at", None)),
                fields=["far_inputs"],
                name="open_dag_by_far_inputs",
            ),
        ),
    ]
