"""Migrations of DAGs carry a filled database over, with nodes that are under way."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from wms.core.models import User
from wms.dags.models import Dag, Edge, Node


@pytest.mark.slow
@pytest.mark.django_db
def test_nodes_under_way_go_on_without_joins(alice: User) -> None:
    before = MigrationExecutor(connection)
    before.migrate([("dags", "0001_tables")])
    old = before.loader.project_state([("dags", "0001_tables")]).apps
    workspace = old.get_model("jobs", "Workspace").objects.create(owner_id=alice.pk)
    dag = old.get_model("dags", "Dag").objects.create(
        name="a.dag", owner_id=alice.pk, workspace=workspace, state="held", state_reason="-"
    )
    nodes = [
        old.get_model("dags", "Node").objects.create(dag=dag, name=name, ordinal=n, state=state)
        for n, (name, state) in enumerate([("A", "submitted"), ("B", "waiting")], start=1)
    ]
    old.get_model("dags", "Edge").objects.create(parent=nodes[0], child=nodes[1])

    # The migrations run in transactions of their own otherwise.
    connection.check_constraints()
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())

    assert Edge.objects.get().is_joined is False
    assert Dag.objects.filter(has_joins=False, skipped_count=0, state="held").exists()
    assert dict(Node.objects.values_list("name", "state")) == {"A": "submitted", "B": "waiting"}
