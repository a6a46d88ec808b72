"""The element that was called `local` is called `host`."""

from django.db import migrations

RENAME = "UPDATE sites_queue SET element = %s WHERE element = %s"


class Migration(migrations.Migration):
    dependencies = [("sites", "0003_task_queue_shares")]

    operations = [
        migrations.RunSQL([(RENAME, ["host", "local"])], [(RENAME, ["local", "host"])]),
    ]
