"""Attempts that are to be accounted have an entry of their own, not a mark on their row."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

_NOTE_ENDED = """
INSERT INTO jobs_endedattempt (attempt_id)
SELECT id FROM jobs_attempt WHERE NOT is_accounted AND outcome <> ''
"""
# Backwards: what has no entry is in the accounts.
_MARK_ACCOUNTED = """
UPDATE jobs_attempt SET is_accounted = true
WHERE outcome <> '' AND id NOT IN (SELECT attempt_id FROM jobs_endedattempt)
"""
# Attempts that another migration has written in the same transaction are checked before the table
# is altered, which is refused else.
_CHECK_WRITTEN = ["SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED"]


class Migration(migrations.Migration):
    dependencies = [("jobs", "0012_container_image")]

    operations = [
        migrations.RunSQL(_CHECK_WRITTEN, _CHECK_WRITTEN),
        migrations.CreateModel(
            name="EndedAttempt",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(_NOTE_ENDED, _MARK_ACCOUNTED),
        migrations.RemoveIndex(model_name="attempt", name="attempt_to_be_accounted"),
        migrations.RemoveField(model_name="attempt", name="is_accounted"),
    ]
