from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [("placement", "0005_keys_and_notes")]

    operations = [
        migrations.AddField(
            model_name="placementallocation",
            name="endpoint",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Whose server keeps the space, too.",
            ),
        ),
        migrations.AddField(
            model_name="placementallocation",
            name="reservation",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="What that server calls it.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="placementallocation",
            name="returned_at",
            field=models.DateTimeField(
                help_text="When that server was asked to give it back.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="placementallocation",
            index=models.Index(
                condition=models.Q(
                    ("released_at__isnull", False),
                    ("returned_at", None),
                    models.Q(("reservation", ""), _negated=True),
                ),
                fields=["expires_at"],
                name="placement_allocation_kept",
            ),
        ),
    ]
