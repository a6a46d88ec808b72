"""Migrations of DAGs carry a filled database over, with work that runs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from wms.core.models import User
from wms.dags.models import Dag, NodeWork

BEFORE = [("dags", "0001_tables"), ("notices", "0001_tables")]


@pytest.mark.django_db
def test_dags_that_run_tolerate_nothing_and_wait_at_no_gate(alice: User) -> None:
    before = MigrationExecutor(connection)
    before.migrate(BEFORE)
    old = before.loader.project_state([*BEFORE, ("jobs", "0002_triggers_and_view")]).apps
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    dag = old.get_model("dags", "Dag").objects.create(
        name="a.dag", owner_id=alice.pk, workspace=workspace, ending_event="fail", ending_status=2
    )
    node = old.get_model("dags", "Node").objects.create(
        dag=dag, name="A", ordinal=1, state="pre_running"
    )
    old.get_model("dags", "NodeWork").objects.create(node=node, pre_code=3)

    # The migrations run in transactions of their own otherwise.
    connection.check_constraints()
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())

    rules = Dag.objects.values_list("success_rule", "tolerances", "ending_cause")
    assert list(rules) == [("", {}, "")]
    works = NodeWork.objects.values_list("pre_code", "is_tolerated", "waits_since")
    assert list(works) == [(3, False, None)]
