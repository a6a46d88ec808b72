from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.dags.graph import find_cycle
from wms.dags.language import parse_dag

DIAMOND = """\
# the classic
JOB A a.sub
Job B b.sub
job C b.sub

JOB D a.sub
PARENT A CHILD B C
parent B C child D
VARS B x="1" y="two words" quote="say \\"hi\\" \\\\"
RETRY C 3
"""


def faults(text: str) -> list[tuple[int | None, str]]:
    return [(finding.line, finding.message) for finding in parse_dag(text, file="x.dag").findings]


def test_a_diamond_is_read_whole() -> None:
    dag = parse_dag(DIAMOND, file="diamond.dag")

    assert dag.findings == []
    assert list(dag.nodes) == ["A", "B", "C", "D"]
    assert set(dag.edges) == {("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")}
    assert dag.nodes["B"].variables == {"x": "1", "y": "two words", "quote": 'say "hi" \\'}
    assert dag.nodes["C"].max_retries == 3


def test_lines_may_stand_above_the_job_lines_that_they_name() -> None:
    dag = parse_dag("PARENT A CHILD B\nRETRY B 1\nJOB A a.sub\nJOB B b.sub", file="x.dag")

    assert dag.findings == []
    assert list(dag.edges) == [("A", "B")]


def test_lines_are_joined_and_comments_between_them_dropped() -> None:
    dag = parse_dag("JOB A a.sub\r\nJOB B b.sub\r\nPARENT A \\\n# why\nCHILD \\\n B", file="x.dag")

    assert dag.findings == []
    assert list(dag.edges) == [("A", "B")]


def test_names_have_case_and_repeated_arcs_collapse() -> None:
    dag = parse_dag("JOB a s\nJOB A s\nPARENT a CHILD A\nPARENT a CHILD A A", file="x.dag")

    assert dag.findings == []
    assert len(dag.nodes) == 2
    assert len(dag.edges) == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("JOB A", 1, "expected: JOB name submit-file"),
        ("JOB A s # later", 1, "unexpected or unsupported after the submit file: # later"),
        ("JOB A s\n\nJOB A t", 3, "node A is defined twice, first in line 1"),
        ("JOB parent s", 1, "parent cannot be the name of a node"),
        ("JOB A+B s", 1, "cannot contain +"),
        ("JOB A s\nPARENT A CHILD B", 2, "unknown child B"),
        ("JOB A s\nPARENT X Y CHILD A", 2, "unknown parent X, Y"),
        ("JOB A s\nPARENT A A", 2, "expected: PARENT"),
        ("JOB A s\nPARENT A CHILD", 2, "at least one node each"),
        ("JOB A s\nVARS A x", 2, "expected name="),
        ("JOB A s\nVARS A", 2, "expected: VARS"),
        ('JOB A s\nVARS A queue_x="1"', 2, "cannot begin with queue"),
        ('JOB A s\nVARS A x="1', 2, "is not closed"),
        ("JOB A s\nVARS B x=1", 2, "unknown node B"),
        ("JOB A s\nRETRY A -1", 2, "RETRY needs a whole number"),
        ("JOB A s\nRETRY A " + "9" * 5000, 2, "RETRY needs a whole number"),
        ("JOB A s\nRETRY A ٣", 2, "RETRY needs a whole number"),
        ("JOB A s\nRETRY A 2 UNLESS-EXIT 1", 2, "unsupported after the number"),
        ("JOB A s\nSPLICE S other.dag", 2, "SPLICE is a DAGMan command that is not supported"),
        ("JOB A s\nABORT_DAG_ON A 1", 2, "not supported here"),
        ("JOB A s\nJOBS B s", 2, "unknown command JOBS"),
    ],
)
def test_a_fault_is_told_with_its_line(text: str, line: int, message: str) -> None:
    (found,) = faults(text)

    assert found[0] == line
    assert message in found[1]


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    found = faults("RETRY A x\nJOB\nPARENT A CHILD B\nJOB A s")

    assert [line for line, _ in found] == [1, 2, 3]


def test_a_product_of_arcs_beyond_all_bounds_is_refused() -> None:
    names = [f"N{n}" for n in range(1500)]
    text = "\n".join(f"JOB {name} s" for name in names)
    every = " ".join(names)

    assert faults(f"{text}\nPARENT {every} CHILD {every}") == [
        (1501, "a DAG has at most 2000000 arcs, repeated ones included")
    ]
    few = " ".join(names[:1000])
    found = faults(f"{text}\n" + f"PARENT {few} CHILD {few}\n" * 3)
    assert [line for line, _ in found] == [1503]


def test_the_list_of_faults_is_bounded() -> None:
    assert len(faults("WHAT\n" * 10_000)) == 200


@given(st.text(alphabet='JOBPARENTCHILDVS =\\"\n#ab', max_size=200))
def test_any_text_is_read_or_refused_with_lines(text: str) -> None:
    for line, message in faults(text):
        assert message
        assert line is not None


def test_a_cycle_is_named_by_its_path() -> None:
    cycle = find_cycle("ABCD", [("A", "B"), ("B", "C"), ("C", "B"), ("C", "D")])

    assert cycle in (["B", "C", "B"], ["C", "B", "C"])
    assert find_cycle("AB", [("A", "A")]) == ["A", "A"]
    assert find_cycle("AB", [("A", "B")]) == []


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_a_cycle_is_found_exactly_when_there_is_one(edges: set[tuple[int, int]]) -> None:
    names = [str(number) for number in range(8)]
    named = {(str(parent), str(child)) for parent, child in edges}

    path = find_cycle(names, named)

    if path:
        assert path[0] == path[-1]
        assert all(arc in named for arc in pairwise(path))
    else:
        # Without a cycle, taking away nodes without parents one after another empties the graph.
        left = set(names)
        while free := {n for n in left if not any(p in left and c == n for p, c in named)}:
            left -= free
        assert not left
