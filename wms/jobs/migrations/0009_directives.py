"""Concurrency limits of attempts, checkpoints among files; disk space becomes a need of jobs."""

from __future__ import annotations

import django.contrib.postgres.indexes
from django.db import migrations, models

#: Disk space was a value of the description by itself. Keys of changed descriptions are found by
#: nobody: what is submitted next writes its own.
_MOVE = """
UPDATE {table} SET {column} = ({column} - 'request_disk_mb') || jsonb_build_object('needs',
    coalesce({column}->'needs', '{{}}') || jsonb_build_object('disk_mb', {column}->'request_disk_mb'))
WHERE {column} ? 'request_disk_mb'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0008_narrower"),
    ]

    operations = [
        migrations.RunSQL(
            _MOVE.format(table="jobs_jobdescription", column="content"), migrations.RunSQL.noop
        ),
        migrations.RunSQL(_MOVE.format(table="jobs_job", column="own"), migrations.RunSQL.noop),
        migrations.AddField(
            model_name="attempt",
            name="limits",
            field=models.JSONField(
                help_text="What it uses of concurrency limits, by name; null: nothing.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="attemptfile",
            name="kind",
            field=models.CharField(
                choices=[
                    ("stdout", "stdout"),
                    ("stderr", "stderr"),
                    ("output", "output"),
                    ("incoming", "checkpoint under way"),
                    ("checkpoint", "checkpoint"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="state_cause",
            field=models.CharField(
                blank=True,
                choices=[
                    ("person", "somebody wanted it"),
                    ("expression", "an expression of its own"),
                    ("begun_held", "it was submitted to be held"),
                    ("job_duration", "it was with a pilot for longer than it may"),
                    ("execution", "its payload ran for longer than it may"),
                    ("checkpoint", "files of its checkpoint are missing"),
                    ("payload", "its payload failed"),
                    ("inputs", "input files are missing"),
                    ("outputs", "output files did not come"),
                    ("unrunnable", "it cannot be run as it is described"),
                    ("unstorable", "what its pilot told of it cannot be stored"),
                    ("undefined", "its site does not define a value that it uses"),
                    ("not_run", "its pilot could not run it"),
                    ("pilot_time", "its pilot had too little time"),
                    ("preempted", "the batch system took its slot back"),
                    ("pilot_stalled", "its pilot fell silent"),
                    ("pilot_failed", "its pilot failed"),
                    ("pilot_ended", "its pilot ended"),
                    ("pilot_removed", "its pilot was removed"),
                    ("dag_held", "its DAG is held"),
                    ("dag_ended", "its DAG ends"),
                    ("dag_left", "its DAG leaves the site"),
                    ("cluster_held", "its cluster is held"),
                    ("cluster_ended", "its cluster was removed"),
                    ("node", "its node has no use for it any more"),
                    ("timeout", "the time of its node was up"),
                ],
                db_default="",
                default="",
                help_text="Why it came into its state; empty where nothing went wrong and nobody acted.",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="jobevent",
            name="cause",
            field=models.CharField(
                blank=True,
                choices=[
                    ("person", "somebody wanted it"),
                    ("expression", "an expression of its own"),
                    ("begun_held", "it was submitted to be held"),
                    ("job_duration", "it was with a pilot for longer than it may"),
                    ("execution", "its payload ran for longer than it may"),
                    ("checkpoint", "files of its checkpoint are missing"),
                    ("payload", "its payload failed"),
                    ("inputs", "input files are missing"),
                    ("outputs", "output files did not come"),
                    ("unrunnable", "it cannot be run as it is described"),
                    ("unstorable", "what its pilot told of it cannot be stored"),
                    ("undefined", "its site does not define a value that it uses"),
                    ("not_run", "its pilot could not run it"),
                    ("pilot_time", "its pilot had too little time"),
                    ("preempted", "the batch system took its slot back"),
                    ("pilot_stalled", "its pilot fell silent"),
                    ("pilot_failed", "its pilot failed"),
                    ("pilot_ended", "its pilot ended"),
                    ("pilot_removed", "its pilot was removed"),
                    ("dag_held", "its DAG is held"),
                    ("dag_ended", "its DAG ends"),
                    ("dag_left", "its DAG leaves the site"),
                    ("cluster_held", "its cluster is held"),
                    ("cluster_ended", "its cluster was removed"),
                    ("node", "its node has no use for it any more"),
                    ("timeout", "the time of its node was up"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("outcome", ""), ("limits__isnull", False)),
                fields=["limits"],
                name="attempt_with_limits",
            ),
        ),
    ]
