from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Pilots claim and report while the indexes are built."""

    atomic = False

    dependencies = [
        ("jobs", "0007_resumable_uploads"),
    ]

    operations = [
        # One that was broken off leaves an index that is not valid.
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS attempt_by_exit_code", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("exit_code__gt", 0)),
                fields=["exit_code", "job"],
                name="attempt_by_exit_code",
            ),
        ),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS attempt_by_signal", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("signal__gt", 0)),
                fields=["signal", "job"],
                name="attempt_by_signal",
            ),
        ),
    ]
