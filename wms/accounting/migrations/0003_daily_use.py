"""What became of core-seconds, by day, site and user."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0002_task_queue_shares"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("site_name", models.CharField(max_length=64)),
                ("owner_name", models.CharField(blank=True, max_length=150)),
                ("useful_s", models.FloatField(default=0.0)),
                ("failed_s", models.FloatField(default=0.0)),
                ("lost_s", models.FloatField(default=0.0)),
                ("idle_s", models.FloatField(default=0.0)),
                ("validation_s", models.FloatField(default=0.0)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("pilots", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "site_name", "owner_name"), name="daily_use_unique"
                    )
                ],
            },
        ),
    ]
