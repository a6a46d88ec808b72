from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("dags", "0008_input_sets"),
    ]

    operations = [
        migrations.AddField(
            model_name="dag",
            name="description_file",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The file in the workspace with the DAG's own description; empty: none known.",
                max_length=1024,
            ),
        ),
    ]
