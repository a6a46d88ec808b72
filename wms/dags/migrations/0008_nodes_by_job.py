"""The index of nodes by their jobs leaves out nodes without one."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dags", "0007_key_of_node_events")]

    operations = [
        migrations.AlterField(
            model_name="node",
            name="job",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="The first job of its latest cluster.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="nodes",
                to="jobs.job",
            ),
        ),
        migrations.AddIndex(
            model_name="node",
            index=models.Index(
                condition=models.Q(("job__isnull", False)), fields=["job"], name="node_by_job"
            ),
        ),
    ]
