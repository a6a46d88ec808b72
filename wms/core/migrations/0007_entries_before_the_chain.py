from django.db import migrations

# Entries that were written before the trigger was there. Writers go on meanwhile: theirs are there
# already, and what was sealed meanwhile is left out.
_AWAIT_SEAL = """
    INSERT INTO core_unsealedentry (entry_id)
    SELECT id FROM core_auditentry
    EXCEPT SELECT unnest(entry_ids) FROM core_auditseal
    ON CONFLICT DO NOTHING
"""


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0006_audit_chain"),
    ]

    operations = [
        migrations.RunSQL(_AWAIT_SEAL, migrations.RunSQL.noop),
    ]
