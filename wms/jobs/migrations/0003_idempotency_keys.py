from django.db import migrations

#: Keys are kept in a table of their own: a request that is sent again finds what it made before.
_KEEP_KEYS = """
INSERT INTO core_idempotencykey (owner_id, kind, key, body_sha256, object_id, created_at)
SELECT owner_id, 'cluster', idempotency_key, body_sha256, id, created_at FROM jobs_cluster
WHERE idempotency_key IS NOT NULL AND created_at > now() - interval '24 hours'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0002_idempotency_keys"),
        ("jobs", "0002_triggers_and_view"),
    ]

    operations = [
        migrations.RunSQL(_KEEP_KEYS, migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="cluster",
            name="cluster_submitted_once",
        ),
        migrations.RemoveField(
            model_name="cluster",
            name="body_sha256",
        ),
        migrations.RemoveField(
            model_name="cluster",
            name="idempotency_key",
        ),
    ]
