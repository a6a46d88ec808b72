"""Inbox entries tell by their kind alone of what their subject is the id."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from wms.core.models import InboxEntry

pytestmark = pytest.mark.django_db
KIND = InboxEntry.Kind


@pytest.mark.parametrize(
    ("kind", "subject"), [(KIND.LOOK, 1), (KIND.BEGIN, 0), (KIND.JOB_EVENT, None)]
)
def test_only_what_tells_of_something_has_a_subject(kind: str, subject: int | None) -> None:
    entry = InboxEntry(topic="test", key=1, kind=kind, subject_id=subject)

    with pytest.raises(IntegrityError), transaction.atomic():
        entry.save()


def test_entries_of_earlier_versions_learn_their_kinds() -> None:
    given = [("dag-control", 7, 0), ("dag-control", 7, 1), ("dag-control", 7, 4711)]
    given += [("dag-jobs", 7, 1), ("dag-inner", 7, 9), ("failure-new", 3, 0)]
    before, after = [("core", "0003_audit_objects")], [("core", "0004_kinds_of_inbox_entries")]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        MigrationExecutor(connection).migrate(before)
        cursor.executemany(
            "INSERT INTO core_inboxentry (topic, key, event_id) VALUES (%s, %s, %s)", given
        )

        MigrationExecutor(connection).migrate(after)

    rows = InboxEntry.objects.order_by("pk").values_list("kind", "subject_id")
    assert list(rows[:4]) == [("look", None), ("begin", None), ("begin", None), ("job event", 1)]
    assert list(rows[4:]) == [("dag", 9), ("group", 3)]
