import django.contrib.postgres.fields
from django.db import migrations, models

from wms.core.database.migrations import BatchedMigration

# Of the owner of a table the database takes no right away; but what refuses each statement has to
# be switched off first, and what was changed then is found by the chain of seals.
_REFUSE = """
    CREATE FUNCTION core_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The audit trail is append-only: % of % is refused.', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END $$;
    CREATE TRIGGER audit_entry_append_only
        BEFORE UPDATE OR DELETE OR TRUNCATE ON core_auditentry
        FOR EACH STATEMENT EXECUTE FUNCTION core_refuse_change();
    CREATE TRIGGER audit_seal_append_only
        BEFORE UPDATE OR DELETE OR TRUNCATE ON core_auditseal
        FOR EACH STATEMENT EXECUTE FUNCTION core_refuse_change()
"""
_ALLOW = """
    DROP TRIGGER audit_seal_append_only ON core_auditseal;
    DROP TRIGGER audit_entry_append_only ON core_auditentry;
    DROP FUNCTION core_refuse_change()
"""
_AWAIT_SEAL = """
    CREATE FUNCTION core_await_seal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO core_unsealedentry (entry_id) SELECT id FROM written;
        RETURN NULL;
    END $$;
    CREATE TRIGGER audit_entry_awaits_seal AFTER INSERT ON core_auditentry
        REFERENCING NEW TABLE AS written
        FOR EACH STATEMENT EXECUTE FUNCTION core_await_seal()
"""
_AWAIT_NOTHING = """
    DROP TRIGGER audit_entry_awaits_seal ON core_auditentry;
    DROP FUNCTION core_await_seal()
"""


class Migration(BatchedMigration):
    dependencies = [
        ("core", "0005_scopes_of_tokens"),
    ]

    operations = [
        migrations.CreateModel(
            name="UnsealedEntry",
            fields=[
                ("entry_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={"verbose_name_plural": "unsealed entries"},
        ),
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "entry_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                ("entry_sha256s", models.BinaryField()),
                ("previous_sha256", models.CharField(max_length=64)),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("sealed_at", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(_REFUSE, _ALLOW),
        migrations.RunSQL(_AWAIT_SEAL, _AWAIT_NOTHING),
    ]
