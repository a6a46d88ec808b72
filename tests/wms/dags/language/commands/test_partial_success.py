"""SUCCESS WHEN, TOLERANCE CATEGORY and GATE in DAG files: what they mean, and their faults."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.language.parsing import fault_locations, read, warning_locations, well_read
from wms.dags.language.commands.success import judge, most_tolerated
from wms.dags.language.spec import GateSpec, GroupTolerance, Retry, SourceLocation, Tolerance
from wms.dags.states import NodeKind

AT_SIX = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
HERE = SourceLocation("case.dag", 1)


@pytest.mark.parametrize(
    ("line", "gate"),
    [
        ("GATE g", GateSpec()),
        (
            "gate g by user:alice,group:physics.higgs,role:shifter,user:alice",
            GateSpec(("user:alice", "group:physics.higgs", "role:shifter")),
        ),
        ("GATE g DEADLINE 90", GateSpec(deadline_s=90)),
        ("GATE g THEN open DEADLINE 2D", GateSpec(deadline_s=172_800, opens_then=True)),
        (
            "GATE g BY user:bob DEADLINE 12h THEN CLOSE",
            GateSpec(("user:bob",), deadline_s=43_200),
        ),
        ("GATE g UNTIL 2026-12-01T06:00Z", GateSpec(opens_at=AT_SIX)),
        ("GATE g UNTIL 2026-12-01T07:00+01:00", GateSpec(opens_at=AT_SIX)),
    ],
)
def test_a_gate_has_people_and_times(line: str, gate: GateSpec) -> None:
    node = well_read(f"JOB A a\n{line}\nPARENT A CHILD g\nDONE g\nPRIORITY g 2").nodes["g"]

    assert (node.gate, node.kind, node.source, node.is_done) == (gate, NodeKind.GATE, "", True)


@pytest.mark.parametrize(
    "line",
    [
        "GATE",
        "GATE g BY",
        "GATE g WHEN x",
        "GATE g BY alice",
        "GATE g BY role:king",
        "GATE g BY role:viewer",
        "GATE g BY user:",
        "GATE g BY " + ",".join(f"user:u{number}" for number in range(51)),
        "GATE g BY user:a BY user:b",
        "GATE g DEADLINE 0",
        "GATE g DEADLINE 1y",
        "GATE g DEADLINE 999999999w",
        "GATE g THEN OPEN",
        "GATE g DEADLINE 5 THEN WAIT",
        "GATE g UNTIL tomorrow",
        "GATE g UNTIL 2026-12-01T06:00",
        "GATE g UNTIL 0001-01-01T00:00+14:00",
        "GATE g UNTIL 2026-12-01T06:00Z DEADLINE 5",
        "GATE A",
        "SUCCESS",
        "SUCCESS WHEN",
        "SUCCESS IF (Done > 1)",
        "SUCCESS WHEN (Done >",
        "SUCCESS WHEN Done + 1",
        "SUCCESS WHEN (Dome > 1)",
        "SUCCESS WHEN (TARGET.Done > 1)",
        'SUCCESS WHEN eval("Done") > 1',
        "SUCCESS WHEN Done > 1" + " " * 10 + "+ 1" * 400,
        "TOLERANCE CATEGORY c 101%",
        "TOLERANCE CATEGORY c -1",
        "TOLERANCE CATEGORY c many",
        "TOLERANCE CATEGORY + 1",
    ],
)
def test_a_faulty_line_is_told_with_its_place(line: str) -> None:
    dag = read(f"JOB A a\n{line}\n")

    command = line.split()[0]
    assert [(each.file, each.line, each.command) for each in dag.findings] == [
        ("case.dag", 2, command)
    ]


@pytest.mark.parametrize(
    "line",
    ["RETRY g 1", "SCRIPT PRE g x.sh", 'VARS g a="1"', "TOLERANCE g 1", "TIMEOUT g RUN 5"],
)
def test_a_gate_runs_nothing_that_could_be_tried_again_or_limited(line: str) -> None:
    assert fault_locations(f"GATE g\nJOB A a\n{line}") == [("case.dag", 3)]


def test_lines_for_all_nodes_pass_gates_over_where_they_are_about_runs() -> None:
    nodes = well_read("GATE g\nJOB A a\nRETRY ALL_NODES 2\nCATEGORY ALL_NODES c").nodes

    assert (nodes["A"].retry, nodes["g"].retry) == (Retry(2), None)
    assert {node.category for node in nodes.values()} == {"c"}


def test_a_second_success_line_is_a_fault_and_one_in_a_splice_has_no_effect() -> None:
    line = "SUCCESS WHEN (Done >= 0.98 * Total)\n"
    assert fault_locations(f"JOB A a\n{line}{line}") == [("case.dag", 3)]

    files = {"s.dag": f"JOB B b\n{line}"}
    assert warning_locations("SPLICE S s.dag\n", files) == [("s.dag", 2)]
    assert well_read("SPLICE S s.dag\n", files).success_rule == ""
    assert well_read(f"JOB A a\n{line}").success_rule == "(Done >= 0.98 * Total)"


def test_a_tolerance_of_a_category_is_no_tolerance_of_a_node() -> None:
    text = "JOB category a\nTOLERANCE category 5 WAIT\nCATEGORY category c\n"
    dag = well_read(f"{text}TOLERANCE CATEGORY c 10%\n")

    assert dag.nodes["category"].tolerance == Tolerance(5, fails_fast=False)
    assert dag.tolerances["c"] == GroupTolerance(10, True, 0, SourceLocation("case.dag", 4))


def test_the_outermost_tolerance_of_a_category_counts_and_an_empty_one_is_warned_of() -> None:
    inner = "JOB B b\nCATEGORY B +c\nTOLERANCE CATEGORY +c 1\nTOLERANCE CATEGORY c 2\n"
    text = "SPLICE S s.dag\nTOLERANCE CATEGORY +c 3\nTOLERANCE CATEGORY +c 4\n"
    dag = well_read(text, {"s.dag": inner})

    assert {name: each.given for name, each in dag.tolerances.items()} == {"+c": "4", "S+c": "2"}
    assert [(each.file, each.line) for each in dag.warnings] == [("case.dag", 3), ("s.dag", 4)]


@pytest.mark.parametrize(
    ("expression", "is_success"),
    [
        ("(Done >= 0.98 * Total)", True),
        ("done > 99", False),
        ("Failed <= Tolerated && Futile == 0", True),
        ("Done / Futile > 1", False),
        ("MY.Total == 100", True),
    ],
)
def test_a_rule_without_a_truth_value_is_no_success(expression: str, is_success: bool) -> None:
    counts = {"Done": 98, "Failed": 2, "Tolerated": 2, "Futile": 0, "Skipped": 0, "Total": 100}

    verdict = judge(expression, counts)

    assert verdict.is_success is is_success
    assert bool(verdict.fault) is ("/" in expression)


def test_what_plain_dagman_does_not_know_is_told_line_by_line() -> None:
    text = "JOB A a\nGATE g\nRETRY A 1\nRETRY A 1 AVOID-SITES\nTIMEOUT A RUN 5\nCATEGORY A c\n"
    rules = "TOLERANCE A 1\nTOLERANCE CATEGORY c 1\nSUCCESS WHEN (Done > 1)\nALWAYS-RUN-POST A\n"

    additions = well_read(f"{text}{rules}").additions

    assert [(each.line, each.command) for each in additions] == [
        (2, "GATE"),
        (4, "RETRY"),
        (5, "TIMEOUT"),
        (8, "TOLERANCE"),
        (9, "SUCCESS"),
        (10, "ALWAYS-RUN-POST"),
    ]


@given(size=st.integers(0, 10**6), limit=st.integers(0, 10**6))
def test_a_tolerance_is_never_exceeded_by_one_node_and_never_one_too_small(
    size: int, limit: int
) -> None:
    number = most_tolerated(GroupTolerance(limit, False, 0, HERE), size)
    assert number == min(limit, size)

    percent = limit % 101
    most = most_tolerated(GroupTolerance(percent, True, 0, HERE), size)
    assert 100 * most <= percent * size < 100 * (most + 1)
    assert 0 <= most <= size
