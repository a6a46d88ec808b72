"""Another cause of a job's state: no container can be started from its image."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0011_attempt_disk"),
    ]

    operations = [
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
                    ("image", "no container can be started from its image"),
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
                    ("image", "no container can be started from its image"),
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
    ]
