import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("jobs", "0007_resumable_uploads"),
        ("placement", "0006_space_at_servers"),
        ("sites", "0002_commissioning"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SpacePlan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "dag",
                    models.BigIntegerField(
                        help_text="The key of its requests' topic.", unique=True
                    ),
                ),
                (
                    "mark",
                    models.CharField(
                        help_text="Of the nodes and the site for which it was made.", max_length=64
                    ),
                ),
                (
                    "claims",
                    models.JSONField(
                        default=list,
                        help_text="Name, storage, bytes, place of the making and of the release.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "ordering": ["-dag"],
            },
        ),
        migrations.AddField(
            model_name="placementrequest",
            name="choice",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Why this storage, where the request left it open.",
            ),
        ),
        migrations.AddField(
            model_name="spaceplan",
            name="workspace",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.workspace"
            ),
        ),
    ]
