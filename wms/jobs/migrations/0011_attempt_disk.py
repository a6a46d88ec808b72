"""Attempts hold disk of their pilots; those that are open hold what their jobs need."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import F, IntegerField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce


def hold_what_jobs_need(apps: Any, schema_editor: Any) -> None:
    """Give open attempts the disk that their jobs need: by itself, or by what they share."""
    attempts = apps.get_model("jobs", "Attempt").objects
    needed = Coalesce(
        KeyTextTransform("disk_mb", KeyTransform("needs", "job__own")),
        KeyTextTransform("disk_mb", KeyTransform("needs", "job__description__content")),
    )
    asking = attempts.filter(outcome="").annotate(needed=Cast(needed, IntegerField()))
    changed = [
        attempts.model(pk=pk, disk_mb=disk_mb)
        for pk, disk_mb in asking.filter(needed__gt=0).values_list("pk", F("needed"))
    ]
    attempts.bulk_update(changed, ["disk_mb"], batch_size=1000)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0010_row_of_cluster_once")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="disk_mb",
            field=models.PositiveIntegerField(db_default=0),
        ),
        migrations.RunPython(hold_what_jobs_need, migrations.RunPython.noop),
    ]
