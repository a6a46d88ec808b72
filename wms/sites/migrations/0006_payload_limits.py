"""What a queue limits of its payloads."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sites", "0005_pilot_terms_and_pressure"),
    ]

    operations = [
        migrations.AddField(
            model_name="queue",
            name="payload_limits",
            field=models.JSONField(
                blank=True,
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text='What payloads may use besides what their jobs ask for, as a JSON object, for example {"disk_mb": 20000, "progress_ratio": 0.01}.',
            ),
        ),
    ]
