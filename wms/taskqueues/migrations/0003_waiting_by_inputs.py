from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Jobs join, and pilots claim, while the index is built."""

    atomic = False

    dependencies = [
        ("taskqueues", "0002_input_sets"),
    ]

    operations = [
        # One that was broken off leaves an index that is not valid.
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS waiting_by_inputs", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="waitingjob",
            index=models.Index(
                condition=models.Q(("input_set_id__isnull", False)),
                fields=["input_set_id", "job_id"],
                name="waiting_by_inputs",
            ),
        ),
    ]
