from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("dags", "0004_records_of_open_matches")]

    operations = [
        AddIndexConcurrently(
            model_name="nodeevent",
            index=models.Index(
                fields=["dag", "created_at"],
                condition=models.Q(("event__in", ["fail", "retry"])),
                name="nodeevent_failures",
            ),
        ),
    ]
