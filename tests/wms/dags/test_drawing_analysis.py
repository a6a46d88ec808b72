from __future__ import annotations

from array import array

import pytest

from wms.dags.reading import drawing_analysis
from wms.dags.reading.drawing import Drawing, assign_positions
from wms.dags.reading.drawing_analysis import (
    estimate_node_times,
    longest_path,
    most_blocking_nodes,
    neighbours_of,
)
from wms.dags.reading.drawing_states import DRAWN

#: Node 0 before 1 and 2, both before 3; node 4 alone.
_ARCS = [(0, 1), (0, 2), (1, 3), (2, 3)]


def _drawing(count: int = 5, arcs: list[tuple[int, int]] = _ARCS) -> Drawing:
    parents, children = [a for a, _ in arcs], [b for _, b in arcs]
    levels, orders = assign_positions(count, parents, children)
    offsets = array("I", range(count))
    return Drawing(100, offsets, levels, orders, array("I", parents), array("I", children))


def _codes(*states: str) -> bytes:
    return bytes(DRAWN.index(state) for state in states)


def test_the_longest_path_goes_through_the_parents_that_ended_last() -> None:
    codes = _codes("done", "done", "done", "done", "done")
    times = [10.0, 50.0, 20.0, 60.0, 5.0]

    ends = estimate_node_times(_drawing(), codes, times, begun=0.0, now=100.0)

    assert longest_path(ends) == [0, 1, 3]
    assert ends.starts == [0.0, 10.0, 10.0, 50.0, 0.0]


def test_nodes_to_come_are_taken_to_last_as_long_as_the_others() -> None:
    codes = _codes("done", "submitted", "done", "waiting", "done")
    times = [10.0, 12.0, 20.0, 0.0, 10.0]

    ends = estimate_node_times(_drawing(), codes, times, begun=0.0, now=15.0)

    assert ends.mean_s == 10.0
    assert ends.ends[1] == 20.0
    assert ends.ends[3] == 30.0


def test_a_node_that_takes_longer_than_others_ends_now_at_the_earliest() -> None:
    codes = _codes("done", "submitted", "done", "waiting", "done")

    ends = estimate_node_times(
        _drawing(), codes, [10.0, 12.0, 20.0, 0.0, 10.0], begun=0.0, now=500.0
    )

    assert ends.ends[1] == 500.0
    assert longest_path(ends) == [0, 1, 3]


def test_no_node_begins_after_its_end_though_its_parent_ran_once_more() -> None:
    codes = _codes("done", "done", "done", "done", "done")

    ends = estimate_node_times(
        _drawing(), codes, [90.0, 50.0, 20.0, 60.0, 5.0], begun=0.0, now=100.0
    )

    assert all(start <= end for start, end in zip(ends.starts, ends.ends, strict=True))


def test_the_nodes_that_hold_up_most_come_first_and_those_that_wait_do_not_count() -> None:
    codes = _codes("done", "failed", "ready", "waiting", "failed")

    found = most_blocking_nodes(_drawing(), codes)

    assert found.is_exact
    assert found.nodes == [(1, 1), (2, 1)]


def test_of_many_nodes_a_sample_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_analysis, "_MAX_COUNTED", 10)
    monkeypatch.setattr(drawing_analysis, "_SAMPLE", 50)
    drawing = _drawing(1001, [(0, node) for node in range(1, 1001)])
    codes = _codes("ready", *["waiting"] * 1000)

    found = most_blocking_nodes(drawing, codes)

    assert not found.is_exact
    assert [node for node, _ in found.nodes] == [0]
    assert 900 <= found.nodes[0][1] <= 1001


def test_the_neighbourhood_of_a_node_grows_by_steps_in_both_directions() -> None:
    drawing = _drawing()

    near = [set(neighbours_of(drawing, 1, depth=depth, limit=99).nodes) for depth in (1, 2)]

    assert near == [{0, 1, 3}, {0, 1, 3}]
    assert set(neighbours_of(drawing, 0, depth=2, limit=99).nodes) == {0, 1, 2, 3}
    assert neighbours_of(drawing, 4, depth=3, limit=99).nodes == [4]


def test_a_neighbourhood_that_is_too_large_is_cut_and_says_so() -> None:
    drawing = _drawing(100, [(0, node) for node in range(1, 100)])

    near = neighbours_of(drawing, 0, depth=1, limit=10)

    assert (len(near.nodes), near.is_cut) == (10, True)
    assert near.nodes[0] == 0
