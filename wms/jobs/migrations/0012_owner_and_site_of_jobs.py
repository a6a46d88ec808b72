"""Where a job was tried last is told by the job itself; owners and sites are counted by state."""

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

_BATCH = 20_000
_FILL = """
UPDATE jobs_job AS job SET site_name = attempt.site_name
FROM jobs_attempt AS attempt
WHERE job.id >= %s AND job.id < %s AND job.attempt_number > 0 AND job.site_name = ''
    AND attempt.job_id = job.id AND attempt.number = job.attempt_number
"""


def fill(apps, schema_editor):
    """Batch by batch, each in a transaction of its own."""
    jobs = apps.get_model("jobs", "Job").objects
    ends = jobs.aggregate(first=models.Min("pk"), last=models.Max("pk"))
    if ends["first"] is None:
        return
    for start in range(ends["first"], ends["last"] + 1, _BATCH):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(_FILL, [start, start + _BATCH])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("jobs", "0011_index_of_reasons"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="site_name",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Where the latest attempt is or was; empty before the first.",
                max_length=64,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(
                condition=models.Q(("site_name", ""), _negated=True),
                fields=["site_name", "state", "id"],
                name="job_by_site",
            ),
        ),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(fields=["owner", "state", "id"], name="job_by_owner"),
        ),
        migrations.AlterField(
            model_name="job",
            name="owner",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="jobs",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        RemoveIndexConcurrently(model_name="attempt", name="attempt_by_site"),
    ]
