from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration

_SUMS = [
    ("useful_s", models.FloatField(default=0.0)),
    ("failed_s", models.FloatField(default=0.0)),
    ("lost_s", models.FloatField(default=0.0)),
    ("cpu_s", models.FloatField(default=0.0, db_default=0.0)),
    ("wall_s", models.FloatField(default=0.0, db_default=0.0)),
    ("attempts", models.PositiveIntegerField(default=0)),
    ("failed_attempts", models.PositiveIntegerField(default=0, db_default=0)),
    ("lost_attempts", models.PositiveIntegerField(default=0, db_default=0)),
]
_NEW = ("cpu_s", "wall_s", "failed_attempts", "lost_attempts")


def _group_name() -> models.CharField:
    return models.CharField(
        blank=True,
        db_default="",
        default="",
        help_text="Accounting group, or none.",
        max_length=64,
    )


class Migration(BatchedMigration):
    dependencies = [("accounting", "0002_links")]

    operations = [
        migrations.CreateModel(
            name="LabelUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("site_name", models.CharField(max_length=64)),
                ("group_name", _group_name()),
                ("owner_name", models.CharField(blank=True, max_length=150)),
                *_SUMS,
                ("label", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "label", "site_name", "group_name", "owner_name"),
                        name="label_use_unique",
                    )
                ],
            },
        ),
        migrations.AddField("dailyuse", "group_name", _group_name()),
        *[migrations.AddField("dailyuse", name, field) for name, field in _SUMS if name in _NEW],
        migrations.RemoveConstraint("dailyuse", "daily_use_unique"),
        migrations.AddConstraint(
            "dailyuse",
            models.UniqueConstraint(
                fields=("day", "site_name", "group_name", "owner_name"), name="daily_use_unique"
            ),
        ),
    ]
