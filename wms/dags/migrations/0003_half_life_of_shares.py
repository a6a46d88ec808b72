"""Tell that the half-life of priorities is that of shares of TaskQueues too."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dags", "0002_groups_of_workspaces"),
    ]

    operations = [
        migrations.AlterField(
            model_name="matchmakingpolicy",
            name="priority_half_life_s",
            field=models.PositiveIntegerField(
                default=86400,
                help_text="After this time used slots count half in a submitter's priority, and in the correction of shares of TaskQueues.",
                validators=[django.core.validators.MinValueValidator(60)],
            ),
        ),
    ]
