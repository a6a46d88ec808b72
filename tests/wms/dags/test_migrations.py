"""Migrations of jobs and DAGs carry a filled database over, with work that runs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from wms.core.models import User
from wms.jobs.models import StoredBytes

BEFORE = [
    ("accounting", "0001_schema"),
    ("dags", "0001_schema"),
    ("jobs", "0001_schema"),
]


@pytest.mark.django_db
def test_files_that_are_stored_already_count_for_their_owners_and_groups(
    alice: User, charlie: User
) -> None:
    before = MigrationExecutor(connection)
    before.migrate(BEFORE)
    old = before.loader.project_state(BEFORE).apps
    physics = old.get_model("accounting", "AccountingGroup").objects.create(name="physics")
    blobs = [
        old.get_model("jobs", "Blob").objects.create(sha256=str(size), size_bytes=size)
        for size in (1, 20, 300)
    ]
    for number, (owner, group) in enumerate([(alice, physics), (alice, None), (charlie, None)]):
        workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=owner.pk)
        old.get_model("dags", "Dag").objects.create(
            name="a.dag", owner_id=owner.pk, workspace=workspace, accounting_group=group
        )
        for path, blob in zip("ab", blobs[: number + 1], strict=False):
            old.get_model("jobs", "WorkspaceFile").objects.create(
                workspace=workspace, path=path, blob=blob
            )

    # The migrations run in transactions of their own otherwise.
    connection.check_constraints()
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())

    counted = StoredBytes.objects.values_list("owner", "owner_group", "size_bytes")
    assert sorted(counted) == sorted(
        [(alice.pk, "physics", 1), (alice.pk, "", 21), (charlie.pk, "", 21)]
    )
