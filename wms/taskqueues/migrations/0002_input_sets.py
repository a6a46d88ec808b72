from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("taskqueues", "0001_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="waitingjob",
            name="input_set_id",
            field=models.BigIntegerField(
                help_text="The set of inputs that ties it to sites, if it has any.", null=True
            ),
        ),
        migrations.AddField(
            model_name="waitingjob",
            name="input_version",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="The version of this set by which it waits here."
            ),
        ),
    ]
