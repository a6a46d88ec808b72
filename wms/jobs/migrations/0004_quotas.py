"""Count the bytes of the files in workspaces by user and group, for quotas.

Triggers keep the count from now on; what is stored already is counted once, under the lock that
they take. The groups of workspaces that there are come from their DAGs: see `dags.0002`.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

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
_COUNT_ALL = """
    INSERT INTO jobs_storedbytes (owner_id, owner_group, size_bytes)
    SELECT workspace.owner_id, workspace.owner_group, sum(blob.size_bytes)
    FROM jobs_workspacefile AS file
    JOIN jobs_workspace AS workspace ON workspace.id = file.workspace_id
    JOIN jobs_blob AS blob ON blob.sha256 = file.blob_id
    GROUP BY workspace.owner_id, workspace.owner_group HAVING sum(blob.size_bytes) <> 0
"""


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0003_clusters"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="owner_group",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The group in whose name it was submitted, for quotas.",
                max_length=64,
            ),
        ),
        migrations.CreateModel(
            name="StoredBytes",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("owner_group", models.CharField(blank=True, db_default="", max_length=64)),
                ("size_bytes", models.BigIntegerField(help_text="What came; negative: went.")),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["owner_group"], name="stored_bytes_by_group")],
            },
        ),
        *(migrations.RunSQL(make, drop) for make, drop in zip(_MAKE, _DROP, strict=True)),
        migrations.RunSQL(_COUNT_ALL, migrations.RunSQL.noop),
    ]
