"""Jobs know the worker nodes that have failed them."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0016_stopped_by_pilot_time")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="avoided_hosts",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(),
                blank=True,
                db_default=models.Value([]),
                default=list,
                help_text="Worker nodes that have failed it, which it leaves to others for a while.",
                size=None,
            ),
        ),
    ]
