from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("jobs", "0008_attempts_by_end")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="limited_to",
            field=models.BigIntegerField(
                blank=True,
                editable=False,
                help_text="Id of the frontend that the token was limited to by which it was submitted: "
                "its owner's data are within reach as far as they are this one's. Empty: all are.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="inputset",
            name="limited_to",
            field=models.BigIntegerField(
                blank=True,
                editable=False,
                help_text="Id of the frontend whose files the owner may read there; empty: those of all.",
                null=True,
            ),
        ),
    ]
