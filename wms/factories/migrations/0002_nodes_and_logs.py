"""Nodes, exit codes and logs of pilots as their factories tell them."""

from __future__ import annotations

from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("factories", "0001_tables")]

    operations = [
        migrations.AlterField(
            model_name="remotefactory",
            name="sites",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Names of the sites whose queues it may serve; none: all.",
            ),
        ),
        migrations.AddField(
            model_name="pilotorder",
            name="exit_code",
            field=models.IntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="pilotorder",
            name="log",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="End of the batch system's log."
            ),
        ),
        migrations.AddField(
            model_name="pilotorder",
            name="node",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Worker node, as the factory's batch system told it.",
                max_length=255,
            ),
        ),
    ]
