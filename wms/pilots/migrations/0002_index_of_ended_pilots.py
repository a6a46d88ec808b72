from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("pilots", "0001_initial")]

    operations = [
        AddIndexConcurrently(
            model_name="pilot",
            index=models.Index(
                fields=["ended_at"],
                condition=models.Q(("ended_at__isnull", False)),
                name="pilot_by_end",
            ),
        ),
    ]
