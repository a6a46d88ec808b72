"""Paths of workspaces have up to 1024 bytes; no table is written anew for it."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dags", "0012_where_dags_are_submitted"),
    ]

    operations = [
        migrations.AlterField(
            model_name="dag",
            name="dag_files",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(),
                db_default=models.Value(
                    [],
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(), size=None
                    ),
                ),
                default=list,
                help_text="The DAG files in the workspace; more than one run as one DAG.",
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="dag",
            name="directory",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="Where in the workspace it runs.",
                max_length=1024,
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="directory",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="Where in the workspace it runs.",
                max_length=1024,
            ),
        ),
        migrations.AlterField(
            model_name="rescue",
            name="dag_file",
            field=models.CharField(
                help_text="Whose progress it is, in the workspace.", max_length=1024
            ),
        ),
        migrations.AlterField(
            model_name="rescue",
            name="path",
            field=models.CharField(help_text="The file in the workspace.", max_length=1024),
        ),
        migrations.AlterField(
            model_name="scriptrun",
            name="directory",
            field=models.CharField(blank=True, max_length=1024),
        ),
        migrations.AlterField(
            model_name="submitdescription",
            name="name",
            field=models.CharField(max_length=1024),
        ),
    ]
