"""Waiting jobs know the worker nodes that have failed them, and leave these to others."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("taskqueues", "0003_host_element")]

    operations = [
        migrations.AddField(
            model_name="waitingjob",
            name="avoided_hosts",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(),
                db_default=models.Value([]),
                default=list,
                help_text="Those of the job: worker nodes that have failed it.",
                size=None,
            ),
        ),
        migrations.AddIndex(
            model_name="waitingjob",
            index=models.Index(
                condition=models.Q(("avoided_hosts", []), _negated=True),
                fields=["job_id"],
                name="waiting_again",
            ),
        ),
    ]
