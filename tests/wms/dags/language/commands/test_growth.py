"""REPEAT and EXPAND: what they are read as, what plain DAGMan does not know, hostile lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wms.dags.language.parsing import faults, values_of, well_read
from wms.dags.language.commands.growth import copy_path, first_name, next_pass, pass_name
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import Expansion, Repeat


def test_the_lines_are_read_whatever_their_order_and_case() -> None:
    text = "expand B d/b.dag\nrepeat A while(Pass<3&&Good) max 7\nJOB A a\nJOB B b DIR d\n"
    dag = well_read(text)

    rule, file = dag.nodes["A"].grows, dag.nodes["B"].grows
    assert isinstance(rule, Repeat)
    assert (rule.text, rule.most, rule.pass_number) == ("(Pass<3&&Good)", 7, 1)
    assert isinstance(file, Expansion)
    assert file.path == "d/d/b.dag"
    assert values_of(dag, "A") == {"PASS": "1"}
    assert values_of(dag, "B") == {}


def test_what_plain_dagman_does_not_know_is_told_line_by_line() -> None:
    dag = well_read("JOB A a\nJOB B b\nREPEAT A WHILE (true) MAX 2\nEXPAND B b.dag\n")

    told = [(each.line, each.command, each.message) for each in dag.additions]
    assert told == [
        (3, "REPEAT", "plain DAGMan does not know REPEAT"),
        (4, "EXPAND", "plain DAGMan does not know EXPAND"),
    ]


def test_the_next_pass_has_what_the_node_has_but_its_name_its_number_and_its_save_point() -> None:
    text = 'JOB A a\nVARS A x="1"\nRETRY A 3\nPRIORITY A 5\nSAVE_POINT_FILE A\n'
    node = well_read(f"{text}REPEAT A WHILE (true) MAX 9\n").nodes["A"]

    second = next_pass(node)
    third = next_pass(second)

    assert [each.name for each in (second, third)] == ["A#2", "A#3"]
    assert (third.retry, third.priority, third.save_point) == (node.retry, 5, None)
    assert {v.name: v.value for v in (third.variables or {}).values()} == {"x": "1", "PASS": "3"}


@given(name=st.text(min_size=1, max_size=20), number=st.integers(1, 10_000))
def test_the_name_of_a_pass_leads_back_to_the_first(name: str, number: int) -> None:
    assert first_name(pass_name(name, number), number) == name


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("REPEAT", "expected: REPEAT"),
        ("REPEAT A", "expected: REPEAT"),
        ("REPEAT A WHILE true MAX 3", "expected: REPEAT"),
        ("REPEAT A WHILE () MAX 3", "the condition of WHILE"),
        ("REPEAT A WHILE (true) MAX 3 4", "expected: REPEAT"),
        ("REPEAT A WHILE (true) MAX -1", "MAX of REPEAT is a whole number"),
        ("REPEAT A WHILE (true) MAX 1e3", "MAX of REPEAT is a whole number"),
        ("REPEAT A WHILE (7) MAX 3", "can never be true"),
        (f"REPEAT A WHILE ({'x' * 1000}) MAX 3", "more than 1000 characters"),
        ("REPEAT A WHILE (" + "(" * 400 + "1" + ")" * 400 + ") MAX 3", "the condition of WHILE"),
        ("EXPAND A", "expected: EXPAND"),
        ("EXPAND A a b", "expected: EXPAND"),
        ("EXPAND A /etc/passwd", "leads outside"),
        (f"EXPAND A {'x' * 250}", "no copy"),
        ("EXPAND ALL_NODES x.dag", "unknown node ALL_NODES"),
    ],
)
def test_a_hostile_line_is_refused_with_its_reason(line: str, message: str) -> None:
    found = faults(f"JOB A a\n{line}\n")

    assert [(file, number) for file, number, _ in found] == [("case.dag", 2)]
    assert message in found[0][2]


def test_names_of_passes_must_fit() -> None:
    name = "x" * 252

    found = faults(f"JOB {name} a\nREPEAT {name} WHILE (true) MAX 1000\n")

    assert "would have more than 255 characters" in found[0][2]


def test_a_fragment_is_read_as_a_splice_without_a_name() -> None:
    text = "JOB A a\nCONFIG c\nSUCCESS WHEN (Done > 1)\nMAXJOBS c 2\nCATEGORY A c\nDOT d\n"
    dag = parse_dag(
        ["f.dag"], {"f.dag": text, "c": "DAGMAN_MAX_JOBS_SUBMITTED = 1\n"}.get, is_fragment=True
    )

    assert list(dag.nodes) == ["A"]
    assert dag.findings == []
    assert (dag.options, dag.success_rule, dag.dot_file, dag.categories) == ({}, "", "", {"c": 2})
    assert [each.line for each in dag.warnings] == [2, 3, 6]
    [fault] = parse_dag(["f.dag"], {"f.dag": "FINAL F f\n"}.get, is_fragment=True).findings
    assert fault.message == "a fragment cannot have a FINAL node"


def test_copies_are_numbered() -> None:
    assert [copy_path("d/x.dag", number) for number in (1, 12_345)] == [
        "d/x.dag.grown001",
        "d/x.dag.grown12345",
    ]
