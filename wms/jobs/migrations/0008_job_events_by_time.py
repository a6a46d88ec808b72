"""The latest events of jobs are found by their time: what is counted for the history."""

from django.contrib.postgres.indexes import BrinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0007_streams_and_delays")]

    operations = [
        AddIndexConcurrently(
            model_name="jobevent",
            index=BrinIndex(
                fields=["created_at"],
                name="jobevent_by_time",
                autosummarize=True,
                pages_per_range=32,
            ),
        ),
    ]
