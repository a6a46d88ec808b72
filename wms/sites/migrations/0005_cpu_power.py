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
        migrations.AddConstraint(
            model_name="queue",
            constraint=models.CheckConstraint(
                condition=models.Q(("cpu_power__gte", 0.01), ("cpu_power__lte", 1000)),
                name="queue_cpu_power_is_sane",
            ),
        ),
    ]
