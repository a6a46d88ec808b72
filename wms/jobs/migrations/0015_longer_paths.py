"""Paths of workspaces have up to 1024 bytes; no table is written anew for it."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0014_order_and_names_of_jobs"),
    ]

    operations = [
        migrations.AlterField(
            model_name="attemptfile",
            name="path",
            field=models.CharField(max_length=1024),
        ),
        migrations.AlterField(
            model_name="job",
            name="directory",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Where in the workspace its files have their names; not the executable.",
                max_length=1024,
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="input_files",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(), default=list, size=None
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="output_files",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(), default=list, size=None
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="stderr_name",
            field=models.CharField(blank=True, help_text="Name in the workspace.", max_length=1024),
        ),
        migrations.AlterField(
            model_name="job",
            name="stdout_name",
            field=models.CharField(blank=True, help_text="Name in the workspace.", max_length=1024),
        ),
        migrations.AlterField(
            model_name="workspacefile",
            name="path",
            field=models.CharField(max_length=1024),
        ),
    ]
