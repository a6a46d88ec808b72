from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.errors import InvalidInput
from wms.dags.simulation.behaviour import (
    Behaviour,
    RunResult,
    node_names_in,
    read_behaviour,
    read_result,
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (0, RunResult()),
        (3, RunResult(3)),
        (-9, RunResult(-9)),
        ("removed", RunResult(is_removed=True)),
        ("hold:4", RunResult(4, is_held=True)),
        ("ready:0", RunResult(is_ready=True)),
    ],
)
def test_a_result_is_read_as_it_is_written(written: object, read: RunResult):
    assert read_result(written) == read


@pytest.mark.parametrize("written", [True, 256, -256, "gone", "removed:1", "hold:x", None, 1.5])
def test_what_is_no_result_is_refused(written: object):
    with pytest.raises(ValueError):  # noqa: PT011 - the message differs with what was written
        read_result(written)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 20))
def test_the_last_result_repeats(codes: list[int], run: int):
    behaviour = read_behaviour({"A": codes}, {})

    assert behaviour.result("A", run).code == codes[min(run, len(codes) - 1)]


def test_what_nothing_was_said_of_succeeds():
    assert Behaviour().result("A", 3) == RunResult()


def test_a_list_is_of_the_processes_of_one_run():
    behaviour = read_behaviour({"A": [[1, 2], 3]}, {})

    codes = [behaviour.result("A", run, process).code for run in (0, 1) for process in (0, 1, 2)]
    assert codes == [1, 2, 2, 3, 3, 3]


def test_the_nearest_duration_counts():
    behaviour = read_behaviour({}, {"*": 1, "A": 2, "A@1": 3, "*.pre": 4, "A@2.pre": 5})

    jobs = [behaviour.duration_us(name, "", run, 9) for name, run in (("B", 0), ("A", 0), ("A", 1))]
    scripts = [behaviour.duration_us("A", "pre", run, 9) for run in (0, 2)]
    assert jobs == [1_000_000, 2_000_000, 3_000_000]
    assert scripts == [4_000_000, 5_000_000]
    assert behaviour.duration_us("A", "post", 0, 9) == 9_000_000


def test_all_faults_are_told_at_once():
    with pytest.raises(InvalidInput) as refused:
        read_behaviour({"A": ["gone"], "B": [[1, "x"]]}, {"C": -1, "D": "long"})

    assert [finding.field for finding in refused.value.findings] == [
        "behaviour of A",
        "behaviour of B",
        "duration of C",
        "duration of D",
    ]


def test_the_nodes_of_keys_are_known():
    keys = ["A", "A@1", "B.pre", "*", "*.post", "S+C@0.hold", "0.D"]

    assert list(node_names_in(keys)) == ["A", "A", "B", "S+C", "0.D"]
