from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("schedules", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="schedulerun",
            name="asked_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Who let it be submitted beside the times; empty: it was a time of the "
                "schedule.",
                max_length=160,
            ),
        ),
    ]
