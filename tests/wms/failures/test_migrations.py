"""Migrations of failures carry a filled database over."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from wms.failures.models import FailureRule


@pytest.mark.django_db
def test_rules_outlive_the_column_of_their_faults() -> None:
    before = MigrationExecutor(connection)
    before.migrate([("failures", "0001_schema")])
    old = before.loader.project_state([("failures", "0001_schema")]).apps
    old.get_model("failures", "FailureRule").objects.create(
        name="Odd", pattern="a(?=b)", is_enabled=False, fault="RE2 cannot read it."
    )

    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("failures"))

    rule = FailureRule.objects.get(name="Odd")
    assert (rule.pattern, rule.is_enabled) == ("a(?=b)", False)
