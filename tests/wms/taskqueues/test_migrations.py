"""Migrations of TaskQueues carry a filled database over, with jobs that wait."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.wms.taskqueues.claiming import drain, put
from wms.taskqueues.models import TaskQueuePolicy
from wms.taskqueues.task_queue_policy import task_queue_policy


@pytest.mark.django_db
@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize("chosen", [False, True, None])
def test_feedback_stays_as_an_administrator_chose_it(chosen: bool | None) -> None:
    put(1, 3)
    if chosen is not None:
        TaskQueuePolicy.objects.create(pk=1, uses_feedback=chosen)
    connection.check_constraints()
    MigrationExecutor(connection).migrate([("taskqueues", "0001_schema")])

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("taskqueues"))

    assert task_queue_policy().uses_feedback is (chosen is not False)
    assert sorted(drain()) == [1, 2, 3]
