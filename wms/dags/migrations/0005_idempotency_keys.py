from django.db import migrations

#: Keys are kept in a table of their own: a request that is sent again finds what it made before.
_KEEP_KEYS = """
INSERT INTO core_idempotencykey (owner_id, kind, key, body_sha256, object_id, created_at)
SELECT owner_id, CASE WHEN is_followed THEN 'followed-dag' ELSE 'dag' END, idempotency_key, '', id, created_at FROM dags_dag
WHERE idempotency_key IS NOT NULL AND created_at > now() - interval '24 hours'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0002_idempotency_keys"),
        ("dags", "0004_gates"),
    ]

    operations = [
        migrations.RunSQL(_KEEP_KEYS, migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="dag",
            name="dag_submitted_once",
        ),
        migrations.RemoveField(
            model_name="dag",
            name="idempotency_key",
        ),
    ]
