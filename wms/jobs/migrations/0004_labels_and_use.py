import django.contrib.postgres.indexes
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("accounting", "0002_links"),
        ("jobs", "0003_idempotency_keys"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="TopicUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("topic", models.CharField(max_length=16)),
                ("topic_key", models.BigIntegerField()),
                ("useful_s", models.FloatField(default=0.0)),
                ("failed_s", models.FloatField(default=0.0)),
                ("lost_s", models.FloatField(default=0.0)),
                ("done_count", models.BigIntegerField(default=0)),
                ("failed_count", models.BigIntegerField(default=0)),
                ("lost_count", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.AddIndex(
            model_name="cluster",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["labels"], name="cluster_by_label"
            ),
        ),
        migrations.AddConstraint(
            model_name="topicuse",
            constraint=models.UniqueConstraint(
                fields=("topic", "topic_key"), name="topic_use_unique"
            ),
        ),
    ]
