"""Migrations of placements carry a filled database over, with requests that are under way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from wms.core.models import User
from wms.placement import operations
from wms.placement.models import PlacementAttempt, PlacementRequest

BEFORE = [("placement", "0001_tables")]


@pytest.mark.slow
# Indexes are made concurrently: in no transaction.
@pytest.mark.django_db(transaction=True)
def test_requests_that_are_under_way_go_on_as_transfers(alice: User) -> None:
    before = MigrationExecutor(connection)
    before.migrate(BEFORE)
    old = before.loader.project_state([*BEFORE, ("jobs", "0002_triggers_and_view")]).apps
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    request = old.get_model("placement", "PlacementRequest").objects.create(
        owner_id=alice.pk, workspace=workspace, source_url="file:a", destination_url="file:b",
        state="processing", attempt_number=1,
    )  # fmt: skip
    now = timezone.now()
    old.get_model("placement", "PlacementAttempt").objects.create(
        request=request, number=1, source_scheme="file", destination_scheme="file",
        started_at=now, lease="x", lease_until=now,
    )  # fmt: skip

    old.get_model("placement", "PlacementRequest").objects.create(
        owner_id=alice.pk, workspace=workspace, source_url="file:a", destination_url="file:b",
    )  # fmt: skip

    # The migrations run in transactions of their own otherwise.
    connection.check_constraints()
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())

    found = PlacementRequest.objects.get(state="processing")
    assert (found.kind, found.leader_id, found.allocation_name) == ("transfer", None, "")
    assert operations.end_lost_attempts(now + timedelta(seconds=1)) == [found.pk]
    assert PlacementAttempt.objects.get().held_bytes is None
    taken = operations.take_request(now)
    assert taken is not None
    assert taken.request_id == PlacementRequest.objects.get(state="processing").pk
