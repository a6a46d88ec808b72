"""Of what a payload prints faster than its pilot may send it, gaps tell what is missing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0012_owner_and_site_of_jobs")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="gaps",
            field=models.JSONField(
                db_default=[],
                default=list,
                help_text="Pairs of bytes: what is not here, from and up to.",
            ),
        ),
    ]
