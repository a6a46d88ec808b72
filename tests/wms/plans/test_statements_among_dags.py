"""The plans of what binds DAGs, notes reasons, and finds DAGs around one, among many idle ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from psycopg.types.json import Jsonb

from tests.wms.dags.driving import NOW
from tests.wms.plans.query_plans import (
    analyze,
    explain,
    indexes,
    rows_read,
    run,
    scanned_whole,
)
from wms.dags.exports import sql as exports
from wms.dags.models import Dag, Node
from wms.dags.negotiation import sql as negotiation
from wms.dags.reading import sql as reading
from wms.dags.reading.input_sets import sets_of_open_dags

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_binding_costs_what_is_bound_whatever_the_number_of_idle_dags(
    idle_dags: list[int], make_site
) -> None:
    site = make_site("site-a")
    rows = [
        {"dag_id": pk, "site_id": site.pk, "environment": {}, "substitutions": {}}
        for pk in idle_dags
    ]
    ads = [{"site_id": site.pk, "attributes": {"Name": "site-a"}}]

    steps = explain(negotiation.BIND_DAGS, {"now": NOW, "bound": Jsonb(rows), "ads": Jsonb(ads)})

    assert not scanned_whole(steps, "dags_dag")
    assert rows_read(steps, "dags_dag") == 100


def test_noting_reasons_costs_what_is_noted(idle_dags: list[int]) -> None:
    reason = {"reasons": ["No site fits now."], "kinds": ["not now"], "states": ["idle"]}
    values = {"dags": idle_dags, "places": [1] * 100, **reason}

    steps = explain(negotiation.NOTE_REASONS, values)

    assert not scanned_whole(steps, "dags_dag")
    assert rows_read(steps, "dags_dag") == 100


def _nest(dags: list[int]) -> list[int]:
    """Give each DAG a node, and let each of the first three be inside of the node before it."""
    run(
        """
        WITH description AS (
            INSERT INTO dags_submitdescription (dag_id, name, content)
            SELECT id, 'x', '{}' FROM dags_dag RETURNING id, dag_id
        )
        INSERT INTO dags_node (dag_id, name, ordinal, submit_description_id, variables, state,
                               state_reason, unfinished_parents, max_retries, retry_number)
        SELECT dag_id, 'a', 1, id, '{}', 'waiting', '', 0, 0, 0 FROM description
        """
    )
    analyze("dags_node")
    for outer, inner in pairwise(dags[:3]):
        node = Node.objects.get(dag_id=outer)
        Dag.objects.filter(pk=inner).update(parent_node=node)
    analyze("dags_dag")
    return dags[:3]


def test_the_dags_around_one_are_found_by_their_ids(idle_dags: list[int]) -> None:
    dags = _nest(idle_dags)

    steps = explain(reading.FIND_OUTER_DAGS, [dags[-1]])

    assert not scanned_whole(steps, "dags_dag")
    assert not scanned_whole(steps, "dags_node")
    # Averages over loops are rounded.
    assert rows_read(steps, "dags_dag") < 4
    assert rows_read(steps, "dags_node") < 3


def test_earlier_attempts_are_counted_in_the_events_of_earlier_runs_alone(
    idle_dags: list[int],
) -> None:
    dags = _nest(idle_dags)
    run(
        """
        INSERT INTO dags_nodeevent
            (dag_id, node_id, event, from_state, to_state, actor, reason, facts, created_at)
        SELECT dag_id, id, 'submit', 'ready', 'submitted', 'test', '', '{}', now()
        FROM dags_node, generate_series(1, 3)
        """
    )
    analyze("dags_nodeevent")
    for earlier, later in pairwise(dags):
        Dag.objects.filter(pk=later).update(previous_run_id=earlier)

    steps = explain(exports.COUNT_EARLIER_ATTEMPTS, [dags[-1]])

    for table in ("dags_dag", "dags_nodeevent"):
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) < 10


def test_sets_of_inputs_of_open_dags_are_found_without_dags_that_have_ended(
    idle_dags: list[int],
) -> None:
    last = idle_dags[-1]
    run("UPDATE dags_dag SET near_inputs_id = id % 100, far_inputs_id = id % 100")
    run("UPDATE dags_dag SET state = 'completed', ended_at = now() WHERE id > %s", [last])
    analyze("dags_dag")

    with CaptureQueriesContext(connection) as queries:
        found = sets_of_open_dags([last % 100, 200])
    [statement] = queries.captured_queries
    steps = explain(statement["sql"], [])

    assert found == {last % 100}
    assert {"open_dag_by_near_inputs", "open_dag_by_far_inputs"} <= indexes(steps)
    assert rows_read(steps, "dags_dag") <= 2 * 2
