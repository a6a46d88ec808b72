import django.core.validators
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("placement", "0009_attempts_by_ends")]

    operations = [
        migrations.AddField(
            model_name="storage",
            name="transfer_requirements",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Which transfers may choose it where they leave the storage open, as a ClassAd expression "
                "in which TARGET is the request. Empty: all.",
                validators=[django.core.validators.MaxLengthValidator(2000)],
            ),
        ),
    ]
