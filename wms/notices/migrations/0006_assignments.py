from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("notices", "0005_sealed_secrets"),
    ]

    operations = [
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("completed", "completed"),
                    ("failed", "failed"),
                    ("failing", "failing"),
                    ("held", "held"),
                    ("halted", "halted"),
                    ("gate-waits", "gate waits"),
                    ("removed", "removed"),
                    ("new-cause", "new cause"),
                    ("regressed", "failing again"),
                    ("banned", "banned"),
                    ("draining", "draining"),
                    ("opened", "opened"),
                    ("node-suspected", "worker node suspected"),
                    ("node-cleared", "worker node cleared"),
                    ("downtime-begun", "downtime begun"),
                    ("downtime-ended", "downtime ended"),
                    ("loop-stale", "loop stale"),
                    ("loop-well", "loop well again"),
                    ("credential-ends", "credential ends soon"),
                    ("credential-ended", "credential has ended"),
                    ("not-submitted", "not submitted"),
                    ("assigned", "assigned to you"),
                    ("switched-off", "switched off"),
                ],
                max_length=16,
            ),
        ),
    ]
