"""Keep what jobs share once: descriptions of their own, and with each job what differs."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

# What a job of before is taken to share with others; the other values are its own. Defaults are
# left out, as everywhere.
_SHARED = """
jsonb_strip_nulls(jsonb_build_object(
    'executable', executable,
    'environment', nullif(environment, '{}'),
    'input_files', to_jsonb(nullif(input_files, '{}')),
    'output_files', to_jsonb(nullif(output_files, '{}')),
    'needs', needs,
    'wall_limit_s', nullif(wall_limit_s, 86400),
    'max_retries', nullif(max_retries, 0),
    'request_disk_mb', nullif(request_disk_mb, 0),
    'directory', nullif(directory, '')
)) || CASE WHEN periodic IS NULL THEN '{}' ELSE jsonb_build_object('periodic', periodic) END
"""
_OWN = """
nullif(jsonb_strip_nulls(jsonb_build_object(
    'arguments', to_jsonb(nullif(arguments, '{}')),
    'stdout_name', nullif(stdout_name, ''),
    'stderr_name', nullif(stderr_name, ''),
    'avoided_hosts', to_jsonb(nullif(avoided_hosts, '{}'))
)) || CASE WHEN attributes = '{}' THEN '{}' ELSE jsonb_build_object('attributes', attributes) END,
'{}')
"""
_KEY = f"sha256(convert_to(({_SHARED})::text, 'UTF8'))"
_STEPS = (
    f"""
    INSERT INTO jobs_jobdescription (key, content)
    SELECT DISTINCT ON (key) key, content
    FROM (SELECT {_KEY} AS key, {_SHARED} AS content FROM jobs_job) AS shared
    ORDER BY key
    """,
    f"""
    UPDATE jobs_job SET description_id = description.id, own = {_OWN},
        has_periodic = periodic IS NOT NULL
    FROM jobs_jobdescription AS description WHERE description.key = {_KEY}
    """,
)


def _share(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        for step in _STEPS:
            cursor.execute(step)


def _refuse_with_jobs(apps: Any, schema_editor: Any) -> None:
    """What jobs of this release have in common is not written back into each of them."""
    if apps.get_model("jobs", "Job").objects.exists():
        raise RuntimeError("jobs.0002 can only be taken back while there is no job")


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_schema")]

    operations = [
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="JobDescription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.BinaryField(
                        help_text="SHA-256 of the content.", max_length=32, unique=True
                    ),
                ),
                (
                    "content",
                    models.JSONField(
                        help_text="Values by name; those that are missing are the defaults."
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="job",
            name="description",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                help_text="What it shares with other jobs.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="jobs.jobdescription",
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="own",
            field=models.JSONField(
                help_text="Values that differ from those of its description; empty: none.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="has_periodic",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="It has expressions, see `periodic`.",
            ),
        ),
        migrations.RunPython(_share, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="job",
            name="description",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                help_text="What it shares with other jobs.",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="jobs.jobdescription",
            ),
        ),
        migrations.RemoveIndex(model_name="job", name="job_with_periodic"),
        *(
            migrations.RemoveField(model_name="job", name=name)
            for name in (
                "executable", "arguments", "environment", "input_files", "output_files",
                "stdout_name", "stderr_name", "needs", "attributes", "wall_limit_s", "max_retries",
                "periodic", "request_disk_mb", "directory", "avoided_hosts",
            )
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(
                    ("has_periodic", True),
                    models.Q(("state__in", ["done", "failed", "killed"]), _negated=True),
                ),
                fields=["id"],
                name="job_with_periodic",
            ),
        ),
        # What the columns held goes with the old form of the rows.
        migrations.RunSQL("CLUSTER jobs_job USING jobs_job_pkey", migrations.RunSQL.noop),
        migrations.RunPython(migrations.RunPython.noop, _refuse_with_jobs),
    ]  # fmt: skip
