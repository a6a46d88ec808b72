"""Jobs that wait for pilots of the element `local` wait for those of `host`, as it is now called."""

from django.db import migrations

RENAME = """
UPDATE taskqueues_taskqueue SET middlewares = array_replace(middlewares, %s, %s)
WHERE %s = ANY(middlewares)
"""


class Migration(migrations.Migration):
    dependencies = [("taskqueues", "0002_task_queue_shares")]

    operations = [
        migrations.RunSQL(
            [(RENAME, ["local", "host", "local"])], [(RENAME, ["host", "local", "host"])]
        ),
    ]
