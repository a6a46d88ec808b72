"""The jobs that have a reason are few, and are looked for by it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0010_index_of_changes")]

    operations = [
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state_reason", ""), _negated=True),
                fields=["state", "id"],
                name="job_with_reason",
            ),
        ),
    ]
