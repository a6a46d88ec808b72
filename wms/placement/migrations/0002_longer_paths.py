"""Paths of workspaces have up to 1024 bytes; no table is written anew for it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("placement", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="placementrequest",
            name="directory",
            field=models.CharField(
                blank=True,
                help_text="Where in the workspace relative names begin.",
                max_length=1024,
            ),
        ),
    ]
