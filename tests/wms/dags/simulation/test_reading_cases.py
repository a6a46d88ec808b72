from __future__ import annotations

import json
from typing import Any

import pytest

from wms.core.errors import InvalidInput
from wms.dags.simulation.conformance.cases import read_cases


def read(*entries: Any) -> Any:
    return read_cases(json.dumps(entries), file="cases.json")


def test_the_documentation_of_the_format_is_passed_over():
    cases = read({"format": {"version": 1}}, {"name": "one", "dag": "JOB A A.sub\n"})

    assert [case.name for case in cases] == ["one"]


def test_further_submissions_take_the_durations_of_the_first():
    [case] = read({"dag": "", "duration": {"A": 3}, "then": [{}, {"duration": {"A": 5}}]})

    durations = [submission.behaviour.durations_s for submission in case.submissions]
    assert durations == [{"A": 3.0}, {"A": 3.0}, {"A": 5.0}]


def test_only_a_case_that_expects_a_cycle_may_be_refused_for_one():
    cycle, other = read({"dag": "", "expect": {"dag_state": "cycle"}}, {"dag": "", "expect": {}})

    assert cycle.may_refuse_cycle
    assert not other.may_refuse_cycle


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"name": "x"}, "no text of a DAG file"),
        ({"name": "x", "dag": "", "what": 1}, "what: there is no such key"),
        ({"name": "x", "dag": "", "expect": {"node": {}}}, "expect.node: there is no such key"),
        ({"name": "x", "dag": "", "then": [{"name": "y"}]}, "name: there is no such key"),
        ({"name": "x", "dag": "", "options": {"fast": True}}, "option fast"),
        ({"name": "x", "dag": "", "behaviour": {"A": ["gone"]}}, "behaviour of A"),
    ],
)
def test_a_fault_names_the_case_and_the_key(entry: dict[str, Any], told: str):
    with pytest.raises(InvalidInput) as refused:
        read(entry)

    assert "case x" in str(refused.value)
    assert told in str(refused.value)


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_a_file_that_is_no_list_of_cases_is_refused(text: str):
    with pytest.raises(InvalidInput):
        read_cases(text, file="cases.json")
