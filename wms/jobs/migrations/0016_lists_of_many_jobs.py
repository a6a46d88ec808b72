"""The index of clusters leaves out jobs with the id of theirs: most lists have one: 46 bytes a job."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import F


class Migration(migrations.Migration):
    dependencies = [("jobs", "0015_told_events")]

    operations = [
        migrations.RemoveIndex(model_name="job", name="job_by_cluster"),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("cluster_id", F("id")), _negated=True),
                fields=["cluster_id"],
                name="job_by_cluster",
            ),
        ),
    ]
