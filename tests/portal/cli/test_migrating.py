"""Progress of migrations, as steps of a portal's start."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from portal.cli.management.commands.prepare_data import _Migrate


@pytest.mark.django_db
def test_of_many_migrations_each_tenth_is_told_and_the_last_one() -> None:
    # As if none had been applied.
    MigrationRecorder.Migration.objects.all().delete()
    executor = MigrationExecutor(connection)
    total = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    told: list[str] = []
    command = _Migrate(told.append)
    command.verbosity = 0

    for _ in range(total):
        command.migration_progress_callback("apply_start")
        command.migration_progress_callback("apply_success")

    numbers = [*range(10, total, 10), total]
    assert told == [f"migrations applied: {number} of {total}" for number in numbers]
