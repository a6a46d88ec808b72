"""Faults of DAG files: their locations, their number, and what follows from them."""

from __future__ import annotations

import pytest

from matching.negotiation.deadline import Deadline
from tests.wms.dags.language.parsing import fault_locations, faults, read, well_read
from wms.dags.language.parser import parse_dag


@pytest.mark.parametrize(
    "line",
    [
        "RETRY F 1", "ABORT-DAG-ON F 1", "PRIORITY F 1", "CATEGORY F c", "DONE F",
        "SAVE_POINT_FILE F", "PIN_IN F 1",
    ],
)  # fmt: skip
def test_a_final_node_cannot_have_it(line: str) -> None:
    (fault,) = faults(f"FINAL F f.sub\n{line}")

    assert fault[1] == 2
    assert "FINAL" in fault[2]


@pytest.mark.parametrize("line", ["RETRY S 1", "PRE_SKIP S 1", "PRIORITY S 1", "PARENT A CHILD S"])
def test_a_service_cannot_have_it(line: str) -> None:
    (fault,) = faults(f"JOB A a.sub\nSERVICE S s.sub\n{line}")

    assert fault[1] == 3
    assert "SERVICE" in fault[2]


@pytest.mark.parametrize("line", ["RETRY P 1", "ABORT-DAG-ON P 1", "PARENT P CHILD A"])
def test_a_provisioner_cannot_have_it(line: str) -> None:
    (fault,) = faults(f"JOB A a.sub\nPROVISIONER P p.sub\n{line}")

    assert fault[1] == 3
    assert "PROVISIONER" in fault[2]


def test_a_second_provisioner_is_refused_with_its_description() -> None:
    text = "PROVISIONER P p.sub\nPROVISIONER Q {\nexecutable = x\n}\nJOB A a.sub"

    ((_, line, message),) = faults(text)

    assert line == 2
    assert "P of line 1" in message


@pytest.mark.parametrize(
    "line",
    [
        "RETRY S 1", "SCRIPT PRE S x", 'VARS S x="1"', "PRIORITY S 1", "CATEGORY S c",
        "SAVE_POINT_FILE S",
    ],
)  # fmt: skip
def test_a_splice_is_no_node_for_commands(line: str) -> None:
    (fault,) = faults(f"SPLICE S in.dag\n{line}", {"in.dag": "JOB A a.sub"})

    assert fault[1] == 2
    assert "splice" in fault[2]


def test_all_faults_are_told_at_once_in_the_order_of_files_and_lines() -> None:
    told = faults(
        "RETRY A x\nJOB\nPARENT A CHILD B\nJOB A s\nINCLUDE b.dag\nSPLICE S a.dag",
        {"a.dag": "\nWHAT", "b.dag": "JOB A s\nWHAT"},
    )

    assert [(file, line) for file, line, _ in told] == [
        ("a.dag", 2),
        ("b.dag", 1),
        ("b.dag", 2),
        ("case.dag", 1),
        ("case.dag", 2),
        ("case.dag", 3),
    ]


def test_what_only_follows_from_a_fault_is_not_told() -> None:
    text = "JOB A a.sub WHAT\nSPLICE S none.dag\nPARENT A CHILD S\nRETRY A 1\nCONNECT S S"

    assert [line for _, line, _ in faults(text)] == [1, 2]


def test_a_fault_in_a_file_that_many_splices_read_is_told_once() -> None:
    text = "\n".join(f"SPLICE S{n} in.dag" for n in range(50))

    files = {"in.dag": "JOB A a.sub\nRETRY A x"}

    assert fault_locations(text, files) == [("in.dag", 2)]


def test_the_lines_of_a_description_that_is_refused_are_no_commands() -> None:
    told = faults("JOB A a.sub\nJOB A {\n executable = x\n}\nSUBMIT-DESCRIPTION s more {\n x\n}")

    assert [line for _, line, _ in told] == [2, 5]


def test_the_list_of_faults_is_bounded() -> None:
    assert len(faults("WHAT\n" * 10_000)) == 200


def test_a_dag_file_that_is_not_there_is_a_fault() -> None:
    (missing,) = parse_dag(["x.dag"], {}.get).findings
    (outside,) = parse_dag(["../x.dag"], {"../x.dag": "JOB A a"}.get).findings

    assert (missing.file, missing.line) == ("x.dag", None)
    assert (outside.file, outside.line) == ("../x.dag", None)


def test_a_cycle_is_told_at_one_of_its_arcs_in_the_right_file() -> None:
    files = {"in.dag": "JOB A a\nJOB B b\n\nPARENT A CHILD B\nPARENT B CHILD A"}

    (finding,) = read("JOB X x\nSPLICE S in.dag\nPARENT X CHILD S", files).findings

    assert (finding.file, finding.line) == ("in.dag", 4)
    assert "S+A -> S+B" in finding.message


def test_a_node_that_waits_for_itself_is_a_cycle() -> None:
    dag = read("JOB A a\nPARENT A CHILD A")

    assert dag.statistics.cycle == ["A", "A"]
    assert dag.findings[0].line == 2


def test_a_cycle_by_pins_is_told_at_the_line_that_joins_them() -> None:
    files = {"in.dag": "JOB A a\nPIN_IN A 1\nPIN_OUT A 1"}

    (finding,) = read("SPLICE S in.dag\nSPLICE T in.dag\nCONNECT S T\nCONNECT T S", files).findings

    assert finding.line == 3
    assert finding.command == "CONNECT"


@pytest.mark.slow
def test_a_long_cycle_is_told_in_short_and_kept_whole() -> None:
    count = 100_000
    lines = [f"JOB N{n} s\nPARENT N{n} CHILD N{(n + 1) % count}" for n in range(count)]

    dag = read("\n".join(lines))

    assert len(dag.statistics.cycle) == count + 1
    assert len(dag.findings[0].message) < 1000


@pytest.mark.parametrize("name", ["A", "ALL_NODES"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_the_variables_of_a_node_are_bounded(name: str, quote: str) -> None:
    lines = [f"VARS {name} x{n}={quote}1{quote}" for n in range(1_000)]
    text = "JOB A a\n" + "\n".join(lines)

    assert len(well_read(text).nodes["A"].variables or ()) == 1_000
    assert len(well_read(f"{text}\n{lines[0]}").nodes["A"].variables or ()) == 1_000
    assert fault_locations(f"{text}\nVARS A y={quote}1{quote}") == [("case.dag", 1_002)]


def test_a_line_with_too_many_variables_is_a_fault() -> None:
    text = "JOB A a\nVARS A " + " ".join(f'x{n}="1"' for n in range(1_001))

    assert fault_locations(text) == [("case.dag", 2)]


class Clock:
    """Goes on by a second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [
        ("JOB A a\n" + "# nothing\n" * 2_000, 20),
        ("JOB A a\n" + 'VARS ALL_NODES x="1"\n' * 200, 20),
        ("SPLICE S s\n" * 200, 20),
        ("JOB A a\n" + "RETRY A 1\n" * 2_000, 20),
    ],
)
def test_reading_ends_when_the_time_is_up(text: str, limit_s: float) -> None:
    clock = Clock()

    dag = parse_dag(
        ["a.dag"], {"a.dag": text, "s": "JOB B b"}.get, deadline=Deadline(clock, limit_s)
    )

    assert clock.now_s == limit_s + 2
    (late,) = [each for each in dag.findings if f"{limit_s} s" in each.message]
    assert (late.line or 0) > 1


def test_a_very_long_value_has_no_references() -> None:
    value = "$$(Memory)" * 20_000

    ((_, line, message),) = faults(f'JOB A a\nVARS A x="{value}"')

    assert line == 2
    assert "131072" in message
