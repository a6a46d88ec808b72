"""What nodes have under way and how DAGs end, in columns instead of JSON."""

import django.db.models.deletion
from django.db import migrations, models

_TO_ROWS = """
INSERT INTO dags_nodework
    (node_id, pre_code, inner_dag_id, request_id, job_count, jobs_left, jobs_failed, failure_code,
     failure_reason, hold_count, is_provisioned, is_fresh)
SELECT id, (known ->> 'pre')::int, (known ->> 'inner')::bigint, (known ->> 'request')::bigint,
    jobs.total, greatest(least(coalesce((known ->> 'left')::int, jobs.total), jobs.total), 0),
    coalesce((known ->> 'failed')::int, 0), (known ->> 'code')::int,
    coalesce(known ->> 'reason', ''), coalesce((known ->> 'holds')::int, 0),
    coalesce((known ->> 'is_provisioned')::boolean, false),
    coalesce((known ->> 'is_fresh')::boolean, false)
FROM dags_node
CROSS JOIN LATERAL (SELECT progress AS known) AS old
CROSS JOIN LATERAL (SELECT coalesce((known ->> 'total')::int, 1) AS total) AS jobs
WHERE progress IS NOT NULL AND jsonb_typeof(progress) = 'object'
"""
# Those of DAGs that have ended need not be known to be plain: it is only faster.
_PLAIN = """
UPDATE dags_node AS node SET is_plain = true
FROM dags_dag AS dag
WHERE dag.id = node.dag_id AND dag.state NOT IN ('completed', 'failed', 'removed')
    AND node.features IS NULL AND node.progress IS NULL AND node.kind <> 'provisioner'
"""
_TO_JSON = """
UPDATE dags_node AS node
SET progress = jsonb_strip_nulls(jsonb_build_object(
    'pre', work.pre_code, 'inner', work.inner_dag_id, 'request', work.request_id,
    'total', CASE WHEN work.job_count > 1 THEN work.job_count END,
    'left', CASE WHEN work.job_count > 1 THEN work.jobs_left END,
    'failed', nullif(work.jobs_failed, 0), 'code', work.failure_code,
    'reason', CASE WHEN work.failure_code IS NOT NULL THEN work.failure_reason END,
    'holds', nullif(work.hold_count, 0), 'is_provisioned', nullif(work.is_provisioned, false),
    'is_fresh', nullif(work.is_fresh, false)))
FROM dags_nodework AS work WHERE work.node_id = node.id
"""

_ENDING = """
UPDATE dags_dag SET
    ending_event = ending ->> 'event', ending_status = (ending ->> 'status')::int,
    ending_code = (ending ->> 'exit_code')::int, ending_reason = ending ->> 'reason',
    ending_rescue = (ending ->> 'rescue')::int
WHERE ending IS NOT NULL AND jsonb_typeof(ending) = 'object'
"""
_ENDING_AS_JSON = """
UPDATE dags_dag SET ending = jsonb_build_object(
    'event', ending_event, 'status', ending_status, 'exit_code', ending_code,
    'reason', ending_reason, 'rescue', ending_rescue)
WHERE ending_event <> ''
"""


class Migration(migrations.Migration):
    dependencies = [
        ("dags", "0014_causes"),
        ("placement", "0002_longer_paths"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="is_plain",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="All that becomes of it follows from its one job's end: see engine.node_work.",
            ),
        ),
        migrations.CreateModel(
            name="NodeWork",
            fields=[
                (
                    "node",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="work",
                        serialize=False,
                        to="dags.node",
                    ),
                ),
                (
                    "pre_code",
                    models.IntegerField(help_text="What PRE gave in this attempt.", null=True),
                ),
                (
                    "job_count",
                    models.PositiveIntegerField(default=1, help_text="Of its list of jobs."),
                ),
                (
                    "jobs_left",
                    models.PositiveIntegerField(default=1, help_text="That have not ended."),
                ),
                ("jobs_failed", models.PositiveIntegerField(default=0)),
                (
                    "failure_code",
                    models.IntegerField(help_text="Of the first job that failed.", null=True),
                ),
                ("failure_reason", models.TextField(blank=True, default="")),
                (
                    "hold_count",
                    models.PositiveIntegerField(
                        default=0, help_text="How often its jobs were held."
                    ),
                ),
                (
                    "is_provisioned",
                    models.BooleanField(
                        default=False, help_text="A provisioner that has said that it is ready."
                    ),
                ),
                (
                    "is_fresh",
                    models.BooleanField(
                        default=False, help_text="Its inner DAG begins anew, and from no rescue."
                    ),
                ),
                (
                    "inner_dag",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="The DAG inside of it.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="dags.dag",
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        help_text="The placement that it runs.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="placement.placementrequest",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("request__isnull", False)),
                        fields=["request"],
                        name="node_by_request",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("inner_dag", None), ("request", None), _connector="OR"),
                        name="node_runs_one_thing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("jobs_left__lte", models.F("job_count"))),
                        name="node_has_no_more_jobs_left_than_all",
                    ),
                ],
            },
        ),
        migrations.RunSQL(_TO_ROWS, _TO_JSON),
        migrations.RunSQL(_PLAIN, migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name="node",
            name="progress",
        ),
        migrations.AddField(
            model_name="dag",
            name="ending_code",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="dag",
            name="ending_event",
            field=models.CharField(
                blank=True,
                choices=[("complete", "complete"), ("fail", "fail"), ("remove", "remove")],
                db_default="",
                default="",
                help_text="How the DAG ends, once that is known, while its FINAL node runs.",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="ending_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="dag",
            name="ending_rescue",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="The number of the rescue that was written for this end.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="dag",
            name="ending_status",
            field=models.PositiveSmallIntegerField(
                choices=[
                    (0, "OK"),
                    (1, "engine error"),
                    (2, "node failed"),
                    (3, "aborted"),
                    (4, "removed"),
                    (5, "cycle"),
                    (6, "halted"),
                ],
                db_default=0,
                default=0,
            ),
        ),
        migrations.RunSQL(_ENDING, _ENDING_AS_JSON),
        migrations.RemoveField(
            model_name="dag",
            name="ending",
        ),
        migrations.AddConstraint(
            model_name="dag",
            constraint=models.CheckConstraint(
                condition=models.Q(("ending_event__in", ["", "complete", "fail", "remove"])),
                name="dag_ending_known",
            ),
        ),
    ]
