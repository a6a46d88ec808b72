import django.contrib.postgres.fields
from django.db import migrations, models

import wms.core.models
from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0004_kept_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="last_used_from",
            field=models.GenericIPAddressField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("read", "read"),
                        ("submit", "submit"),
                        ("control", "control"),
                        ("site", "site"),
                        ("admin", "admin"),
                    ],
                    max_length=16,
                ),
                db_default=models.Value("{read,submit,control,site,admin}"),
                default=wms.core.models.every_scope,
                size=None,
            ),
        ),
    ]
