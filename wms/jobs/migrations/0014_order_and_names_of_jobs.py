"""The list of jobs is sorted by the last change, also of those in a state, and searched by name."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0013_gaps_of_streams")]

    operations = [
        migrations.RemoveIndex(model_name="job", name="job_by_change"),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["state", "state_since", "id"], name="job_by_last_change"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                fields=["name"], name="job_by_name", opclasses=["varchar_pattern_ops"]
            ),
        ),
    ]
