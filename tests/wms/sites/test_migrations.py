from __future__ import annotations

from importlib import import_module

import pytest
from django.db import connection

from wms.core.models import User
from wms.sites.models import Queue
from wms.taskqueues.models import TaskQueue


def carry_out(module: str, *, backwards: bool = False) -> None:
    [operation] = import_module(module).Migration.operations
    with connection.cursor() as cursor:
        for statement, values in operation.reverse_sql if backwards else operation.sql:
            cursor.execute(statement, values)


@pytest.mark.parametrize(
    ("backwards", "before", "after"), [(False, "local", "host"), (True, "host", "local")]
)
def test_queues_and_the_needs_of_waiting_jobs_get_the_new_name_of_the_element(
    make_site, alice: User, backwards: bool, before: str, after: str
) -> None:
    make_site("x")
    Queue.objects.update(element=before)
    TaskQueue.objects.create(
        key="k", owner=alice, cpu_time_s=1, cores=1, memory_mb=1, middlewares=["arc", before]
    )

    carry_out("wms.sites.migrations.0004_host_element", backwards=backwards)
    carry_out("wms.taskqueues.migrations.0003_host_element", backwards=backwards)

    assert Queue.objects.get().element == after
    assert TaskQueue.objects.get().middlewares == ["arc", after]
