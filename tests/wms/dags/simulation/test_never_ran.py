from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wms.dags.simulation.dry_run.never_ran import failed_ancestors, reason_not_run


def test_failures_are_handed_down_to_all_that_waits():
    states = {"A": "error", "B": "futile", "C": "futile", "D": "done"}

    assert failed_ancestors(states, {"B": ["A"], "C": ["B"], "D": ["C"]}) == {
        "B": ["A"],
        "C": ["A"],
        "D": [],
    }


@given(st.integers(1, 40))
def test_only_some_of_many_failures_are_named(count: int):
    names = [f"N{number}" for number in range(count)]
    states = dict.fromkeys(names, "error") | {"Z": "futile"}

    assert len(failed_ancestors(states, {"Z": names})["Z"]) == min(count, 5)


def test_what_was_told_of_a_node_goes_before_what_it_waits_for():
    states, parents = {"A": "submitted", "B": "unready"}, {"B": ["A"]}

    assert reason_not_run("B", "", [], states, parents).split()[-1] == "A"
    assert reason_not_run("B", "ending", [], states, parents) == "ending"
    assert reason_not_run("B", "ending", ["X"], states, parents) == "X failed"
