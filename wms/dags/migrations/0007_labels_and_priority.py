import django.contrib.postgres.fields
import django.contrib.postgres.indexes
from django.conf import settings
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    dependencies = [
        ("accounting", "0002_links"),
        ("dags", "0006_growth"),
        ("jobs", "0002_triggers_and_view"),
        ("sites", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="dag",
            name="labels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(),
                blank=True,
                db_default=models.Value(
                    [],
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), size=None
                    ),
                ),
                default=list,
                help_text="Words to find it by; those of a DAG are also those of the DAGs inside of it.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="priority",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="From 0 to 10: among the DAGs of its owner, and of all of its jobs. Empty: the usual one, and that of each job is in its description.",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="dag",
            index=django.contrib.postgres.indexes.GinIndex(fields=["labels"], name="dag_by_label"),
        ),
        migrations.AddConstraint(
            model_name="dag",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("priority__isnull", True), ("priority__lte", 10), _connector="OR"
                ),
                name="dag_priority_known",
            ),
        ),
    ]
