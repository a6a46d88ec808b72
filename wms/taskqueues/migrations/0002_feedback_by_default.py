"""Feedback is on where nobody has set the policy; a stored policy keeps what it says."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("taskqueues", "0001_schema"),
    ]

    operations = [
        migrations.AlterField(
            model_name="taskqueuepolicy",
            name="uses_feedback",
            field=models.BooleanField(
                default=True,
                help_text="Correct shares by recent use, with the half-life of priorities: less for who used more than their share.",
            ),
        ),
    ]
