"""Worker nodes and exit codes as batch systems tell them, and logs of remote pilots."""

from __future__ import annotations

from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("pilots", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="pilot",
            name="batch_node",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Worker node, as the batch system told it last.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="pilot",
            name="batch_exit_code",
            field=models.IntegerField(help_text="As the batch system told it.", null=True),
        ),
        migrations.AddField(
            model_name="remoteorder",
            name="log",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="End of the batch system's log of a pilot that went wrong, until it was told.",
            ),
        ),
    ]
