"""Migrations to bindings carry a database over in which DAGs run and jobs wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.wms.dags.driving import claim_one, end, match, run_all
from wms.dags.models import Dag
from wms.jobs.models import Job

pytestmark = pytest.mark.django_db
Make = Callable[..., Any]


def test_dags_that_run_at_their_sites_go_on_after_bindings_are_known(
    make_site: Make, submit: Make
) -> None:
    make_site()
    dag = match(submit("JOB A step.sub\nJOB B step.sub\n"))
    attempt = claim_one()
    _set_back("dags", "0003_half_life_of_shares")
    _set_back("jobs", "0006_output_leases")

    connection.check_constraints()
    after = MigrationExecutor(connection)
    after.migrate([*after.loader.graph.leaf_nodes("jobs"), *after.loader.graph.leaf_nodes("dags")])

    dag = Dag.objects.get(pk=dag.pk)
    assert (dag.binding, dag.state, dag.site.name) == ("site", "running", "site-a")
    assert {job.late for job in Job.objects.all()} == {None}
    assert attempt is not None
    end(attempt)
    assert run_all(dag).state == "completed"


def _set_back(app: str, migration: str) -> None:
    # What the test itself has written is in its transaction still.
    connection.check_constraints()
    executor = MigrationExecutor(connection)
    executor.migrate([(app, migration)])
