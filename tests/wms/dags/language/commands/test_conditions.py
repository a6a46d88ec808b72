"""WHEN and JOIN are read, and their faults told with the line."""

from __future__ import annotations

import pytest

from tests.wms.dags.language.parsing import faults, well_read
from wms.dags.language.size_limits import MAX_CONDITION_LENGTH

NODES = "".join(f"JOB {name} {name}.sub\n" for name in "ABC") + "FINAL F F.sub\n"


def test_conditions_and_joins_are_read_in_any_case() -> None:
    dag = well_read(
        NODES + 'parent A CHILD B when ((x > 1) && y == "a (b")\nPARENT A B CHILD C WHEN (z)\n'
        "Join C any\nJOIN B 1\nJOIN A all\n"
    )

    names = list(dag.nodes)
    texts = {(names[a], names[b]): rule.text for (a, b), rule in dag.conditions.items()}
    assert texts == {
        ("A", "B"): '((x > 1) && y == "a (b")',
        ("A", "C"): "(z)",
        ("B", "C"): "(z)",
    }
    assert {names[at]: rule.needed for at, rule in dag.joins.items()} == {
        "A": None,
        "B": 1,
        "C": 1,
    }


def test_a_node_may_be_called_as_the_word() -> None:
    dag = well_read("JOB A a.sub\nJOB WHEN b.sub\nPARENT A CHILD WHEN\n")

    assert (len(dag.arcs), dag.conditions) == (1, {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("PARENT A CHILD B WHEN (x >)", "must stand before"),
        ("PARENT A CHILD B WHEN (x) y", "condition of WHEN"),
        ("PARENT A CHILD B WHEN (5)", "can never be true"),
        ("PARENT A CHILD B WHEN (TARGET.x)", "no TARGET"),
        ('PARENT A CHILD B WHEN (eval("x"))', "eval cannot be used"),
        (f"PARENT A CHILD B WHEN ({'x' * MAX_CONDITION_LENGTH})", "more than 1000 characters"),
        ("WEAK PARENT A CHILD B WHEN (x)", "has no WHEN"),
        ("JOIN B", "expected: JOIN"),
        ("JOIN B 0", "expected: JOIN"),
        ("JOIN B SOME", "expected: JOIN"),
        ("JOIN B 2", "needs 2 arcs that hold, and has 1 in all"),
        ("JOIN A ANY", "needs 1 arcs that hold, and has 0 in all"),
        ("JOIN F ANY", "FINAL node, which cannot have JOIN"),
        ("JOIN ALL_NODES ANY", "about one node"),
        ("JOIN X ANY", "unknown node X"),
    ],
)
def test_a_fault_is_told_with_its_line(line: str, message: str) -> None:
    [(file, number, told)] = faults(NODES + "PARENT A CHILD B\n" + line + "\n")

    assert (file, number) == ("case.dag", 6)
    assert message in told


def test_an_arc_has_one_condition() -> None:
    [(_, line, told)] = faults(NODES + "PARENT A CHILD B WHEN (x)\nPARENT A CHILD B WHEN (y)\n")

    assert line == 6
    assert "from A to B has a condition already, by case.dag, line 5" in told
