"""Migrations of DAGs carry a filled database over, with work that runs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from wms.core.idempotency import RequestKey, made_before
from wms.core.idempotency_models import MadeKind
from wms.core.models import User
from wms.dags.models import Dag, Edge, Node, NodeWork

BEFORE = [("dags", "0001_tables"), ("notices", "0001_tables")]


@pytest.mark.slow
@pytest.mark.django_db
def test_dags_that_run_go_on_without_joins_gates_and_tolerances(alice: User) -> None:
    before = MigrationExecutor(connection)
    before.migrate(BEFORE)
    old = before.loader.project_state([*BEFORE, ("jobs", "0002_triggers_and_view")]).apps
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    dag = old.get_model("dags", "Dag").objects.create(
        name="a.dag", owner_id=alice.pk, workspace=workspace, state="held", state_reason="-",
        ending_event="fail", ending_status=2, idempotency_key="monday",
    )  # fmt: skip
    nodes = [
        old.get_model("dags", "Node").objects.create(dag=dag, name=name, ordinal=n, state=state)
        for n, (name, state) in enumerate([("A", "pre_running"), ("B", "waiting")], start=1)
    ]
    old.get_model("dags", "Edge").objects.create(parent=nodes[0], child=nodes[1])
    old.get_model("dags", "NodeWork").objects.create(node=nodes[0], pre_code=3)

    # The migrations run in transactions of their own otherwise.
    connection.check_constraints()
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())

    assert Edge.objects.get().is_joined is False
    found = Dag.objects.filter(has_joins=False, skipped_count=0, state="held")
    rules = found.values_list("success_rule", "tolerances", "ending_cause")
    assert list(rules) == [("", {}, "")]
    assert dict(Node.objects.values_list("name", "state")) == {"A": "pre_running", "B": "waiting"}
    works = NodeWork.objects.values_list("pre_code", "is_tolerated", "waits_since")
    assert list(works) == [(3, False, None)]
    assert made_before(alice, RequestKey(MadeKind.DAG, "monday", "0" * 64)) == dag.pk
