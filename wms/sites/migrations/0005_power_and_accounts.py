from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sites", "0004_imported_downtimes"),
    ]

    operations = [
        migrations.AddField(
            model_name="queue",
            name="cpu_power",
            field=models.FloatField(
                db_default=1.0,
                default=1.0,
                help_text="Power of a core of its nodes, 1.0 being that for which jobs tell their "
                "CPU time; the check benchmark measures it.",
                validators=[MinValueValidator(0.01), MaxValueValidator(1000.0)],
            ),
        ),
        migrations.AddField(
            model_name="queue",
            name="payload_accounts",
            field=models.JSONField(
                blank=True,
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="Accounts of the nodes that jobs of users and groups run under, with the "
                'fence sudo, as a JSON object, for example {"users": {"alice": ["alice"]}, '
                '"groups": {"cms": ["cms1", "cms2"]}}; all others run under those of the pool.',
            ),
        ),
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("cpu_power__gte", 0.01), ("cpu_power__lte", 1000)),
                name="queue_cpu_power_is_sane",
            ),
        ),
    ]
