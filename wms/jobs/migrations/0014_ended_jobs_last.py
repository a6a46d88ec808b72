"""The index of the latest changes has the jobs that are done last, where it grows densely."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0013_ended_attempts")]

    operations = [
        migrations.RemoveIndex(model_name="job", name="job_by_last_change"),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["-state", "state_since", "id"], name="job_by_last_change"),
        ),
    ]
