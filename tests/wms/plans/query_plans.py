"""Query plans by EXPLAIN ANALYZE, for tests: scans, indexes, rows read, steps that write.

Also plain SQL, and a DAG of many nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection

from wms.core.models import User
from wms.dags.models import Dag, SubmitDescription
from wms.jobs.models import Workspace


def run(sql: str, parameters: Any = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def analyze(*tables: str) -> None:
    """Statistics from all rows: from a sample, plans would differ from run to run."""
    run("SET LOCAL default_statistics_target = 1000")
    for table in tables:
        run(f"ANALYZE {table}")


def settle(*tables: str) -> None:
    """End of the making of rows that tests share: checked once, not at the end of each test."""
    connection.check_constraints()
    analyze(*tables)


def explain(sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Run the statement; all steps of its plan, with the real numbers of rows and loops."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", parameters)
        found = cursor.fetchone()[0]
    plan = json.loads(found) if isinstance(found, str) else found
    return list(_steps(plan[0]["Plan"]))


def _steps(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for inner in step.get("Plans", []):
        yield from _steps(inner)


def scanned_whole(steps: list[dict[str, Any]], table: str) -> bool:
    return any(s["Node Type"] == "Seq Scan" and s.get("Relation Name") == table for s in steps)


def indexes(steps: list[dict[str, Any]]) -> set[str]:
    """The names of the indexes by which rows are found."""
    return {step["Index Name"] for step in steps if "Index Name" in step}


def rows_read(steps: list[dict[str, Any]], table: str) -> float:
    scans = [s for s in steps if s.get("Relation Name") == table and "Scan" in s["Node Type"]]
    return sum(scan["Actual Rows"] * scan["Actual Loops"] for scan in scans)


def dag_of(owner: User, nodes: int) -> Dag:
    """A DAG of so many waiting nodes, without arcs."""
    dag = Dag.objects.create(
        name="wide", owner=owner, workspace=Workspace.objects.create(owner=owner)
    )
    description = SubmitDescription.objects.create(dag=dag, name="x", content={})
    run(
        """
        INSERT INTO dags_node (dag_id, name, ordinal, submit_description_id, variables, state,
                               state_reason, unfinished_parents, max_retries, retry_number)
        SELECT %s, n::text, n, %s, '{}', 'waiting', '', 1, 0, 0
        FROM generate_series(1, %s) AS n
        """,
        [dag.pk, description.pk, nodes],
    )
    analyze("dags_node")
    return dag


def written(steps: list[dict[str, Any]], table: str) -> dict[str, Any]:
    """The step that writes a table; of an upsert with its index and the rows that were there."""
    [step] = [s for s in steps if s["Node Type"] == "ModifyTable" and s["Relation Name"] == table]
    return step
