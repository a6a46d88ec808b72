from django.db import migrations, models
from django.db.models.functions import Now

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("core", "0013_remarks_and_wallboards")]

    operations = [
        migrations.AddField(
            model_name="controlloop",
            name="known_since",
            field=models.DateTimeField(db_default=Now()),
        ),
    ]
