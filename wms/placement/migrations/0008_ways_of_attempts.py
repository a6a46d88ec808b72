from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("placement", "0007_space_plans")]

    operations = [
        migrations.AddField(
            model_name="placementattempt",
            name="source_end",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The storage from which this transfer read, or the host where it is in "
                "none.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="placementattempt",
            name="destination_end",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.AddField(
            model_name="placementattempt",
            name="choice",
            field=models.JSONField(
                help_text="Why this way, where there was more than one: a code, and figures.",
                null=True,
            ),
        ),
    ]
