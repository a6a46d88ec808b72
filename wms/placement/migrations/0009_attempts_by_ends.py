from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration


class Migration(BatchedMigration):
    """Requests are placed while the indexes are built."""

    atomic = False

    dependencies = [("placement", "0008_ways_of_attempts")]

    operations = [
        # One that was broken off leaves an index that is not valid.
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS placement_attempt_by_ends", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="placementattempt",
            index=models.Index(
                condition=models.Q(("source_end", ""), _negated=True),
                fields=["source_end", "destination_end", "ended_at"],
                name="placement_attempt_by_ends",
            ),
        ),
        # Where the step before made it already, it is made anew.
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS placement_waiting_for_space", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="placementrequest",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ["received", "rescheduled"]), ("kind", "allocate")
                ),
                fields=["due_at"],
                name="placement_waiting_for_space",
            ),
        ),
    ]
