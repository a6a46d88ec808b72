"""A DAG that no site fits is brought up at once, not after a while."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dags", "0010_what_each_negotiation_left_over")]

    operations = [
        migrations.AddField(
            model_name="dag",
            name="unmatched_kind",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="The same in a kind that is counted.",
                max_length=40,
            ),
        ),
    ]
