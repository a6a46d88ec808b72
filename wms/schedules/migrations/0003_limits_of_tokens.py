from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("schedules", "0002_runs_on_demand")]

    operations = [
        migrations.AddField(
            model_name="schedule",
            name="limited_to",
            field=models.BigIntegerField(
                blank=True,
                editable=False,
                help_text="Id of the frontend that the token was limited to by which it was made; its DAGs "
                "are submitted so too. Empty: it was not limited.",
                null=True,
            ),
        ),
    ]
