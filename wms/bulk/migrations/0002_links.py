import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    replaces = [("bulk", "0001_schema")]

    initial = True

    dependencies = [
        ("bulk", "0001_tables"),
        ("core", "__first__"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkoperation",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="bulk_operations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="bulkoperation",
            name="retry_of",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="retries",
                to="bulk.bulkoperation",
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="operation",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="items",
                to="bulk.bulkoperation",
            ),
        ),
        migrations.AddField(
            model_name="bulkoperationevent",
            name="operation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="bulk.bulkoperation",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(fields=["owner", "id"], name="bulkoperation_by_owner"),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["operation", "outcome", "id"], name="bulkitem_by_outcome"),
        ),
        migrations.AddIndex(
            model_name="bulkitem",
            index=models.Index(fields=["operation", "id"], name="bulkitem_by_operation"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(
                fields=("operation", "object_id"), name="bulkitem_once"
            ),
        ),
        migrations.AddIndex(
            model_name="bulkoperationevent",
            index=models.Index(fields=["operation", "id"], name="bulkevent_by_operation"),
        ),
    ]
