from django.db import migrations

_BATCH = 1000


def open_records(apps, schema_editor):
    """Give DAGs that were bound before matches were recorded an open record of their stay."""
    dags = apps.get_model("dags", "Dag").objects
    records = apps.get_model("dags", "MatchRecord").objects
    bound = dags.filter(state__in=["running", "held"], site__isnull=False)
    missing = bound.exclude(pk__in=records.filter(ended_at=None).values("dag_id")).order_by("pk")
    columns = ("pk", "site_id", "matched_at", "state_since")
    while batch := list(missing.values_list(*columns)[:_BATCH]):
        records.bulk_create(
            [
                records.model(dag_id=pk, site_id=site, matched_at=matched_at or state_since)
                for pk, site, matched_at, state_since in batch
            ],
            ignore_conflicts=True,
        )


class Migration(migrations.Migration):
    # Each batch is committed by itself; begun again, it goes on where it was broken off.
    atomic = False
    dependencies = [("dags", "0003_rematching")]

    operations = [migrations.RunPython(open_records, migrations.RunPython.noop)]
