"""The jobs that changed lately are found by their time."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0009_indexes_of_lists")]

    operations = [
        AddIndexConcurrently(
            model_name="job", index=models.Index(fields=["state_since"], name="job_by_change")
        ),
    ]
