"""Triggers that count the bytes of files in workspaces by user and group; the view of all events."""

from django.db import migrations

# A plan that was made for a hundred thousand files is used for one file in the same session, and
# the other way round: the scalar subqueries leave no choice but one look into a table for each file
# and workspace, and without sequential scans it is a look into an index, however small the table
# was when the plan was made.
_COUNTED = """
    INSERT INTO jobs_storedbytes (owner_id, owner_group, size_bytes)
    SELECT (SELECT owner_id FROM jobs_workspace WHERE id = changed.workspace_id),
           (SELECT owner_group FROM jobs_workspace WHERE id = changed.workspace_id), changed.bytes
    FROM (
        SELECT workspace_id, sum(bytes) AS bytes FROM ({rows}) AS file
        GROUP BY workspace_id HAVING sum(bytes) <> 0
    ) AS changed;
"""
_SIZES = """
        SELECT workspace_id,
               {sign}(SELECT size_bytes FROM jobs_blob WHERE sha256 = file.blob_id) AS bytes
        FROM {table} AS file
"""
_CAME = _SIZES.format(sign="", table="came")
_WENT = _SIZES.format(sign="-", table="went")
_CHANGES = {
    "insert": (_CAME, "NEW TABLE AS came"),
    "delete": (_WENT, "OLD TABLE AS went"),
    "update": (f"{_CAME} UNION ALL {_WENT}", "OLD TABLE AS went NEW TABLE AS came"),
}
_MAKE = [
    f"""
    CREATE FUNCTION jobs_count_files_of_{change}() RETURNS trigger LANGUAGE plpgsql
    SET enable_seqscan = off AS $$
    BEGIN
    {_COUNTED.format(rows=rows)}
    RETURN NULL;
    END $$;
    CREATE TRIGGER count_bytes_of_{change} AFTER {change} ON jobs_workspacefile
    REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION jobs_count_files_of_{change}();
    """
    for change, (rows, tables) in _CHANGES.items()
]
_DROP = [
    f"""
    DROP TRIGGER count_bytes_of_{change} ON jobs_workspacefile;
    DROP FUNCTION jobs_count_files_of_{change}();
    """
    for change in _CHANGES
]
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
_DROP_VIEW = "DROP VIEW jobs_loggedjobevent"


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0001_schema"),
        ("jobs", "0002_descriptions"),
        ("jobs", "0003_clusters"),
        ("jobs", "0004_quotas"),
        ("jobs", "0005_unnamed_contents"),
        ("jobs", "0006_output_leases"),
        ("jobs", "0007_late_binding"),
        ("jobs", "0008_narrower"),
        ("jobs", "0009_directives"),
        ("jobs", "0010_row_of_cluster_once"),
        ("jobs", "0011_attempt_disk"),
        ("jobs", "0012_container_image"),
        ("jobs", "0013_ended_attempts"),
        ("jobs", "0014_ended_jobs_last"),
        ("jobs", "0015_told_events"),
        ("jobs", "0016_lists_of_many_jobs"),
    ]

    dependencies = [("jobs", "0001_tables")]

    operations = [
        *(migrations.RunSQL(make, drop) for make, drop in zip(_MAKE, _DROP, strict=True)),
        migrations.RunSQL(_CREATE_VIEW, _DROP_VIEW),
    ]
