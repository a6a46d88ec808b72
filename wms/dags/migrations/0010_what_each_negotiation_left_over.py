from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("dags", "0009_nodes_without_states_in_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="negotiationcycle",
            name="left_over",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="The most frequent reasons in full, with some of their DAGs; "
                "kept for a day.",
            ),
        ),
        AddIndexConcurrently(
            model_name="matchrecord",
            index=models.Index(fields=["matched_at"], name="match_by_time"),
        ),
    ]
