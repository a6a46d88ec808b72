"""Jobs and attempts tell their usual events, which had rows of their own; a view has all events.

What was written before stays as it is: its rows are those of events still.
"""

from __future__ import annotations

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

# The states are stored as in the rows of events. Rows that tell none are left out around it all:
# with a condition of its own no part could be joined by the index of its jobs.
_CREATE_VIEW = """
CREATE VIEW jobs_loggedjobevent AS
SELECT * FROM (
    SELECT id, event, from_state, to_state, actor, reason, facts, created_at, job_id, cause
    FROM jobs_jobevent
    UNION ALL
    SELECT enqueue_event, 'enqueue'::varchar(32), 'c'::varchar(16), 'w'::varchar(16),
        submitted_by, ''::text, '{}'::jsonb, created_at, id, ''::varchar(16)
    FROM jobs_job
    UNION ALL
    SELECT match_event, 'match'::varchar(32), 'w'::varchar(16), 'm'::varchar(16),
        actor, ''::text, jsonb_build_object('host', host), matched_at, job_id, ''::varchar(16)
    FROM jobs_attempt
    UNION ALL
    SELECT start_event, 'start'::varchar(32), 'm'::varchar(16), 'r'::varchar(16),
        actor, ''::text, '{}'::jsonb, started_at, job_id, ''::varchar(16)
    FROM jobs_attempt
) AS told WHERE id IS NOT NULL
"""
# Backwards: each event has a row again, with the id that it had.
_WRITE_TOLD = """
INSERT INTO jobs_jobevent
    (id, event, from_state, to_state, actor, reason, facts, created_at, job_id, cause)
SELECT id, event, from_state, to_state, actor, reason, facts, created_at, job_id, cause
FROM jobs_loggedjobevent AS told
WHERE NOT EXISTS (SELECT 1 FROM jobs_jobevent AS kept WHERE kept.id = told.id)
"""
_DROP_VIEW = "DROP VIEW jobs_loggedjobevent"
# As in 0013: what another migration has written is checked before a table is altered.
_CHECK_WRITTEN = ["SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED"]


class Migration(migrations.Migration):
    dependencies = [("jobs", "0014_ended_jobs_last")]

    operations = [
        migrations.RunSQL(_CHECK_WRITTEN, _CHECK_WRITTEN),
        migrations.AddField(
            model_name="attempt",
            name="actor",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of its two events.",
                max_length=160,
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="match_event",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="start_event",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="enqueue_event",
            field=models.BigIntegerField(
                help_text="Its first event, which this row tells; empty where that has a row of its own.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="submitted_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Actor of that event.",
                max_length=160,
            ),
        ),
        migrations.AlterField(
            model_name="jobevent",
            name="job",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="jobs.job",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True,
                fields=["started_at"],
                name="attempt_by_start",
                pages_per_range=32,
            ),
        ),
        migrations.RunSQL(
            _CREATE_VIEW,
            [_WRITE_TOLD, _DROP_VIEW],
            state_operations=[
                migrations.CreateModel(
                    name="LoggedJobEvent",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True)),
                        ("event", models.CharField(max_length=32)),
                        ("from_state", models.CharField(blank=True, max_length=16)),
                        ("to_state", models.CharField(blank=True, max_length=16)),
                        ("actor", models.CharField(max_length=160)),
                        ("reason", models.TextField(blank=True)),
                        ("facts", models.JSONField(blank=True, default=dict)),
                        ("created_at", models.DateTimeField()),
                        (
                            "job",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="events",
                                to="jobs.job",
                            ),
                        ),
                        ("cause", models.CharField(blank=True, max_length=16)),
                    ],
                    options={"managed": False},
                ),
            ],
        ),
    ]
