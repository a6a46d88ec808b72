from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wms.dags.simulation.dry_run.critical_path import NodeSpan, PathStep, critical_path


def test_the_path_leads_to_the_node_that_ended_last():
    spans = {
        "A": NodeSpan(0, 10),
        "B": NodeSpan(10, 20),
        "C": NodeSpan(10, 50),
        "D": NodeSpan(50, 60),
    }
    parents = {"B": ["A"], "C": ["A"], "D": ["B", "C"]}

    assert critical_path(spans, parents) == [
        PathStep("A", 10, 0),
        PathStep("C", 40, 0),
        PathStep("D", 10, 0),
    ]


def test_waiting_behind_the_last_parent_is_told():
    spans = {"A": NodeSpan(0, 10), "B": NodeSpan(25, 30)}

    assert critical_path(spans, {"B": ["A"]}) == [PathStep("A", 10, 0), PathStep("B", 5, 15)]


def test_nodes_of_which_nothing_ran_are_passed_over():
    spans = {"A": NodeSpan(0, 10), "C": NodeSpan(10, 30)}

    assert critical_path(spans, {"N": ["A"], "C": ["N"]}) == [
        PathStep("A", 10, 0),
        PathStep("C", 20, 0),
    ]


def test_there_is_no_path_where_nothing_ran():
    assert critical_path({}, {"B": ["A"]}) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_the_legs_and_their_waits_add_up_to_the_whole_time(steps: list[tuple[int, int]]):
    """In a chain everything is on the path."""
    spans, now = {}, 0
    for number, (waits, lasts) in enumerate(steps):
        spans[f"N{number}"] = NodeSpan(now + waits, now + waits + lasts)
        now += waits + lasts
    parents = {f"N{number + 1}": [f"N{number}"] for number in range(len(steps) - 1)}

    path = critical_path(spans, parents)

    assert sum(step.duration_us + step.waited_us for step in path) == now
    assert [step.name for step in path] == list(spans)
