"""Migrations of accounts and audit that have to carry what is there."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.audit_chain.checking import check_chain
from wms.core.audit_chain.sealing import seal_batch
from wms.core.models import AuditEntry, UnsealedEntry

BEFORE = [("core", "0005_scopes_of_tokens")]


@pytest.mark.slow
@pytest.mark.django_db
def test_entries_of_before_and_those_of_now_are_sealed() -> None:
    before = MigrationExecutor(connection)
    before.migrate(BEFORE)
    kept = {"actor": "olga", "action": "ban site", "target": "site A", "reason": "early"}
    AuditEntry.objects.bulk_create([AuditEntry(**kept) for _ in range(3)])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())
    record_action("ban site", target="site B", actor=Actor("olga"))

    assert UnsealedEntry.objects.count() == 4
    assert seal_batch(timezone.now()) == 4
    assert (check_chain().fault, check_chain().entries) == (None, 4)
