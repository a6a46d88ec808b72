from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("dags", "0005_index_of_node_failures")]

    operations = [
        AddIndexConcurrently(
            model_name="dag",
            index=models.Index(
                fields=["looked_at"],
                condition=models.Q(("looked_at__isnull", False)),
                name="dag_looked_at",
            ),
        ),
    ]
