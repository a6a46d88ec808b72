"""Note the group of each DAG's workspace, and count the bytes of files by user and group anew."""

from django.db import migrations

# Nobody adds files between the count and its commit.
_COUNT_BY_GROUP = """
    LOCK TABLE jobs_workspacefile IN SHARE ROW EXCLUSIVE MODE;
    UPDATE jobs_workspace AS workspace SET owner_group = acc.name
    FROM dags_dag AS dag
    JOIN accounting_accountinggroup AS acc ON acc.id = dag.accounting_group_id
    WHERE workspace.id = dag.workspace_id;
    DELETE FROM jobs_storedbytes;
    INSERT INTO jobs_storedbytes (owner_id, owner_group, size_bytes)
    SELECT workspace.owner_id, workspace.owner_group, sum(blob.size_bytes)
    FROM jobs_workspacefile AS file
    JOIN jobs_workspace AS workspace ON workspace.id = file.workspace_id
    JOIN jobs_blob AS blob ON blob.sha256 = file.blob_id
    GROUP BY workspace.owner_id, workspace.owner_group HAVING sum(blob.size_bytes) <> 0;
"""


class Migration(migrations.Migration):
    dependencies = [("dags", "0001_schema"), ("jobs", "0004_quotas")]

    operations = [migrations.RunSQL(_COUNT_BY_GROUP, migrations.RunSQL.noop)]
