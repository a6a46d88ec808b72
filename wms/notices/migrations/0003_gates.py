from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("notices", "0002_ends_of_credentials"),
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
                    ("switched-off", "switched off"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="rule",
            field=models.CharField(
                choices=[
                    ("dag", "one DAG: it ends, fails, is failing or is held"),
                    ("my-dags-ended", "a DAG of mine is completed or removed"),
                    ("my-dags-failed", "a DAG of mine is failing or has failed"),
                    ("my-dags-held", "a DAG of mine is held or halted, or waits at a gate"),
                    (
                        "my-failures",
                        "what is mine fails for a new cause, or again for a resolved one",
                    ),
                    (
                        "site",
                        "a site is banned, drained or opened, a downtime begins or ends, or a node is suspected",
                    ),
                    ("credentials", "a credential of a frontend of mine ends soon or has ended"),
                    ("loops", "a control loop is late or fails"),
                ],
                max_length=16,
            ),
        ),
    ]
