"""From where the names in the DAG files of a submission are looked up."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dags", "0011_kinds_of_reasons")]

    operations = [
        migrations.AddField(
            model_name="dag",
            name="root_path",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text=(
                    "The absolute path that the workspace's top had where its files come from."
                ),
                max_length=1000,
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="uses_dag_dir",
            field=models.BooleanField(
                db_default=False, help_text="Names are looked up in the folder of each DAG file."
            ),
        ),
    ]
