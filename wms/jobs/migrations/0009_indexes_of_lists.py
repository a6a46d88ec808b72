"""What the list of jobs is asked for, where a million of them are."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0008_job_events_by_time")]

    operations = [
        AddIndexConcurrently(
            model_name="job", index=models.Index(fields=["created_at"], name="job_by_time")
        ),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                condition=models.Q(attempt_number__gt=1),
                fields=["attempt_number"],
                name="job_tried_again",
            ),
        ),
        AddIndexConcurrently(
            model_name="attempt",
            index=models.Index(fields=["site_name", "job"], name="attempt_by_site"),
        ),
    ]
