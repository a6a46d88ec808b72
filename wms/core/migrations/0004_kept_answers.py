from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0003_schedules"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotencykey",
            name="answer",
            field=models.JSONField(null=True),
        ),
        migrations.AlterField(
            model_name="idempotencykey",
            name="kind",
            field=models.CharField(
                choices=[
                    ("dag", "DAG"),
                    ("followed-dag", "followed DAG"),
                    ("cluster", "cluster"),
                    ("placement", "placement request"),
                    ("answer", "answer"),
                ],
                max_length=16,
            ),
        ),
    ]
