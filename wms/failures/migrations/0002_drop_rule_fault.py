"""Drop the reason why a rule was switched off: no rule is switched off by Pilotage any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("failures", "0001_schema")]

    operations = [migrations.RemoveField(model_name="failurerule", name="fault")]
