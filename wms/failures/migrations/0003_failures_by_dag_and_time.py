"""Index by which the first failure of a DAG is found without its others."""

from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Failures are recorded while the index is built."""

    atomic = False

    dependencies = [
        ("failures", "0002_failures_by_dag"),
    ]

    operations = [
        # One that was broken off leaves an index that is not valid.
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS failure_by_dag_and_time", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="failure",
            index=models.Index(
                condition=models.Q(("dag_id__isnull", False)),
                fields=["dag_id", "at"],
                name="failure_by_dag_and_time",
            ),
        ),
    ]
