"""The plans by which the engine reads its inbox, and walks along the arcs of a large DAG."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.wms.plans.query_plans import (
    analyze,
    dag_of,
    explain,
    indexes,
    rows_read,
    run,
    scanned_whole,
)
from wms.core import sql as core
from wms.core.models import User
from wms.dags.engine import sql as engine
from wms.dags.exports import sql as exports
from wms.dags.growth import sql as growth
from wms.dags.joins import sql as joins
from wms.dags.models import Dag, Edge, Node, NodeEvent
from wms.dags.reading import sql as reading
from wms.dags.services import sql as services
from wms.failures.failure_reports import read_events
from wms.failures.models import Kind
from wms.jobs.models import Job, JobEvent

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def _of_level(level: int, count: int) -> list[int]:
    """Some nodes of `wide_dag`: below its root, or below these."""
    first = 2 if level == 1 else 30_002
    nodes = Node.objects.filter(ordinal__gte=first).order_by("ordinal")
    return list(nodes.values_list("pk", flat=True)[:count])


def test_entries_are_taken_and_read_without_those_of_other_dags() -> None:
    run(
        "INSERT INTO core_inboxentry (topic, key, kind)"
        " SELECT 'dags', n / 10, 'look' FROM generate_series(1, 50000) AS n"
    )
    analyze("core_inboxentry")
    topics = ["dags", "dag-jobs"]
    asked = {"dags": list(range(2500, 2520)), "topics": topics, "most": 5}

    taken = explain(engine.TAKE_ENTRIES, [topics, 2500, 5000])
    read = explain(engine.READ_ENTRIES, asked)

    assert not scanned_whole([*taken, *read], "core_inboxentry")
    assert rows_read(taken, "core_inboxentry") == 20
    assert rows_read(read, "core_inboxentry") <= 20 * 10


def test_counters_are_added_to_the_dags_of_a_round_alone(alice: User) -> None:
    dags = [dag_of(alice, 1) for _ in range(3)]
    counts = [{"id": dag.pk, "round_number": 1, "ready_count": 1} for dag in dags[:2]]

    # So few would be read as a whole.
    for way in ("seqscan", "mergejoin", "hashjoin"):
        run(f"SET LOCAL enable_{way} = off")
    steps = explain(engine.add_counts(["ready_count"]), {"steps": json.dumps(counts)})

    assert rows_read(steps, "dags_dag") == 2


def test_events_of_jobs_are_read_with_their_jobs_and_nodes_and_nothing_else(
    jobs: None, wide_dag: Dag
) -> None:
    first = Job.objects.order_by("pk").values_list("pk", flat=True)[0]
    run("UPDATE dags_node SET job_id = %s + ordinal - 1 WHERE ordinal <= 20000", [first])
    analyze("dags_node")
    events = list(JobEvent.objects.order_by("pk").values_list("pk", flat=True)[1000:1100])

    run("UPDATE jobs_job SET topic_key = %s WHERE id < %s", [wide_dag.pk, first + 20_000])

    steps = explain(engine.READ_JOB_EVENTS, {"ids": f"{{{','.join(map(str, events))}}}"})

    for table in ("jobs_jobevent", "jobs_job", "dags_node"):
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) <= 100


def test_a_change_of_state_finds_its_entities_by_their_ids(jobs: None) -> None:
    ids = list(Job.objects.values_list("pk", flat=True)[:100])
    statement = core.apply_event(
        entities="jobs_job",
        events="jobs_jobevent",
        subject="job_id",
        changes="",
        has_causes=True,
        listeners=(core.ANNOUNCE_TO_SUBMITTERS, core.ANNOUNCE_TO_OBSERVERS),
    )

    steps = explain(
        statement,
        {
            "ids": f"{{{','.join(map(str, ids))}}}",
            "sources": ["done"],
            "event": "note",
            "target": None,
            "actor": "test",
            "reason": "",
            "cause": "",
            "facts": None,
            "kind": "job event",
            "observers": "notices",
        },
    )

    assert not scanned_whole(steps, "jobs_job")
    # Once for their locks, once for their topics.
    assert rows_read(steps, "jobs_job") <= 200


def test_walks_down_read_what_there_is_below(wide_dag: Dag) -> None:
    nodes = _of_level(1, 10)
    # Twice as many nodes below as here, and all nodes would be read.
    run("SET LOCAL enable_hashjoin = off")

    found = explain(services.FIND_WITH_DESCENDANTS, [nodes])
    counted = explain(reading.COUNT_DESCENDANTS, {"given": nodes})

    for steps in (found, counted):
        assert not scanned_whole(steps, "dags_edge")
        assert rows_read(steps, "dags_edge") == 10
    assert not scanned_whole(counted, "dags_node")
    assert rows_read(counted, "dags_node") == 10


def test_a_walk_up_reads_what_there_is_above(wide_dag: Dag) -> None:
    run("UPDATE dags_node SET state = 'futile' WHERE ordinal > 1")
    analyze("dags_node")
    [node] = _of_level(2, 1)

    steps = explain(reading.FIND_FAILED_ANCESTORS, [node, 20])

    assert not scanned_whole(steps, "dags_edge")
    assert not scanned_whole(steps, "dags_node")
    assert rows_read(steps, "dags_edge") == 2


def test_parents_are_counted_anew_by_the_arcs_above_alone(wide_dag: Dag) -> None:
    nodes = _of_level(2, 10)

    recounted = explain(services.RECOUNT_PARENTS, [nodes])
    lost = explain(services.FIND_LOST_PARENTS, [nodes])

    for steps in (recounted, lost):
        assert not scanned_whole(steps, "dags_edge")
        assert not scanned_whole(steps, "dags_node")
        assert rows_read(steps, "dags_edge") == 10


def test_joins_are_counted_and_decided_by_the_arcs_of_the_nodes_that_ended_alone(
    wide_dag: Dag,
) -> None:
    run("UPDATE dags_edge SET is_joined = true")
    run(
        "INSERT INTO dags_join (node_id, needed_count, arc_count)"
        " SELECT child_id, 1, count(*) FROM dags_edge GROUP BY child_id"
    )
    analyze("dags_edge", "dags_join")
    parents, nodes = _of_level(1, 10), _of_level(2, 10)
    ended = {"parents": _ids(parents), "states": ["done"] * 10}

    found = [
        explain(joins.COUNT_ENDS, ended),
        explain(joins.RECOUNT_ARCS, {"nodes": _ids(nodes)}),
        explain(joins.FOLLOW_JOINS, {"nodes": _ids(nodes)}),
        explain(joins.FIND_ENDED_WITH, {**ended, "states": ["skipped"] * 10}),
        explain(joins.MARK_ARCS, {"joined": _ids(nodes)}),
    ]

    for steps in found:
        for table in ("dags_edge", "dags_join", "dags_node"):
            assert not scanned_whole(steps, table)
            assert rows_read(steps, table) <= 20
    unmet = explain(joins.FIND_UNMET, {"dag": wide_dag.pk})
    assert rows_read(unmet, "dags_node") <= 60_001
    run("TRUNCATE dags_join")
    stored = explain(joins.STORE_JOINS, {"joined": _ids(nodes), "nodes": "{}", "needed": "{}"})
    assert not scanned_whole(stored, "dags_edge")
    assert rows_read(stored, "dags_edge") <= 20


def test_arcs_and_conditions_are_handed_over_by_their_parents(wide_dag: Dag) -> None:
    run(
        "INSERT INTO dags_condition (parent_id, child_id, expression)"
        " SELECT parent_id, child_id, 'true' FROM dags_edge"
    )
    analyze("dags_condition")
    parents, heirs = _of_level(1, 10), _of_level(2, 10)
    asked = {"nodes": _ids(parents), "heirs": _ids(heirs)}

    # A tenth of a small table would be read as a whole.
    for way in ("seqscan", "mergejoin", "hashjoin"):
        run(f"SET LOCAL enable_{way} = off")
    for statement, table in (
        (growth.HAND_OVER_CONDITIONS, "dags_condition"),
        (growth.HAND_OVER_ARCS, "dags_edge"),
    ):
        steps = explain(statement, asked)
        assert not scanned_whole(steps, table)
        assert rows_read(steps, table) == 10


def _ids(nodes: list[int]) -> str:
    return f"{{{','.join(map(str, nodes))}}}"


def test_the_version_of_a_drawing_reads_the_last_event_alone(wide_dag: Dag) -> None:
    run(
        """
        INSERT INTO dags_nodeevent
            (dag_id, node_id, event, from_state, to_state, actor, reason, facts, created_at)
        SELECT dag_id, id, 'make ready', 'waiting', 'ready', 'test', '', '{}', now()
        FROM dags_node
        """
    )
    analyze("dags_nodeevent")

    steps = explain(reading.READ_VERSION, [wide_dag.pk])

    assert not scanned_whole(steps, "dags_nodeevent")
    assert rows_read(steps, "dags_nodeevent") == 1


def test_failures_of_nodes_are_found_by_the_ids_that_were_announced(wide_dag: Dag) -> None:
    run(
        """
        INSERT INTO dags_nodeevent
            (dag_id, node_id, event, from_state, to_state, actor, reason, facts, created_at)
        SELECT dag_id, id, CASE WHEN id % 20 = 0 THEN 'fail' ELSE 'make ready' END, 'ready',
            'failed', 'test', 'x', '{}', now()
        FROM dags_node
        """
    )
    analyze("dags_nodeevent")
    ids = list(NodeEvent.objects.filter(event="fail").values_list("pk", flat=True)[:50])

    with CaptureQueriesContext(connection) as queries:
        found = read_events(Kind.NODE, ids)

    assert {each.event_id for each in found} == set(ids)
    steps = explain(queries[0]["sql"], None)
    assert not scanned_whole(steps, "dags_nodeevent")
    assert "nodeevent_announced" in indexes(steps)


def test_pages_of_a_small_dag_read_nothing_of_a_large_one(wide_dag: Dag, alice: User) -> None:
    dag = dag_of(alice, 50)
    nodes = list(Node.objects.filter(dag=dag).order_by("pk").values_list("pk", flat=True))
    Edge.objects.bulk_create(Edge(parent_id=a, child_id=b) for a, b in pairwise(nodes))
    analyze("dags_edge")
    shown = {"dag": dag.pk, "is_over": False, "in_flight": ["submitted"]}

    arcs = explain(reading.READ_ARCS, [nodes[0], nodes[-1]])
    of_nodes = [
        explain(reading.READ_NODE_IDS, [dag.pk]),
        explain(reading.READ_NODE_TIMES, [dag.pk]),
        explain(reading.read_node_states({"waiting": "a"}), [["plain"], dag.pk]),
        explain(exports.read_node_statuses(["waiting"]), shown),
    ]
    sides = {"here": dag.pk, "there": dag_of(alice, 10).pk}
    asked = {**sides, "chosen": "any", "least_s": 10.0, "limit": 5, "offset": 0}
    compared = explain(reading.COMPARE_NODES, asked)
    described = explain(reading.COMPARE_DESCRIPTIONS, asked)

    assert not scanned_whole(arcs, "dags_edge")
    assert rows_read(arcs, "dags_edge") == 49
    for steps in of_nodes:
        assert not scanned_whole(steps, "dags_node")
        assert rows_read(steps, "dags_node") == 50
    assert not scanned_whole([*compared, *described], "dags_node")
    assert rows_read(compared, "dags_node") == 60


def test_releasing_children_costs_what_the_finished_nodes_cost(wide_dag: Dag) -> None:
    statement = engine.count_down()
    values = {
        "parents": _of_level(1, 100),
        "dags": [wide_dag.pk],
        "ranks": [1],
        "event": "make ready",
        "source": "waiting",
        "target": "ready",
        "actor": "test",
        "reason": "",
        "cause": "",
        "facts": "{}",
    }

    steps = explain(statement, values)

    assert not scanned_whole(steps, "dags_edge")
    assert not scanned_whole(steps, "dags_node")
    assert rows_read(steps, "dags_edge") == 100


def test_giving_up_descendants_costs_what_there_is_below(wide_dag: Dag) -> None:
    steps = explain(engine.FIND_FUTILE, {"failed": _of_level(1, 10)})

    assert not scanned_whole(steps, "dags_edge")
    assert rows_read(steps, "dags_edge") == 10
