"""Find the pilots that have no accounts at all: an index of JSON nulls found none of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pilots", "0006_pressure")]

    operations = [
        migrations.RemoveIndex(model_name="pilot", name="pilot_to_be_accounted"),
        migrations.AddIndex(
            model_name="pilot",
            index=models.Index(
                condition=models.Q(("accounts__isnull", True), ("ended_at__isnull", False)),
                fields=["ended_at"],
                name="pilot_to_be_accounted",
            ),
        ),
    ]
