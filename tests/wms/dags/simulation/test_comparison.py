"""Differences between the expectations of a case and the outcome of its run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.simulation.conformance.cases import read_cases
from wms.dags.simulation.conformance.comparison import Difference
from wms.dags.simulation.conformance.runner import run_cases

pytestmark = pytest.mark.django_db

CHAIN = "JOB A A.sub\nJOB B B.sub\nPARENT A CHILD B\nSCRIPT PRE B pre.sh $JOB one\n"


def differences(dag: str, expect: dict[str, Any], **more: Any) -> list[Difference]:
    text = json.dumps([{"name": "case", "dag": dag, "expect": expect, **more}])
    [result] = run_cases(read_cases(text, file="cases.json"))
    return result.differences


@pytest.mark.parametrize(
    ("expectation", "value", "facts"),
    [
        ("dag_state", "failed", ["'failed'", "'success'"]),
        ("dag_status", [1, 2], ["[1, 2]", "0"]),
        ("exit_code", 1, ["1", "0"]),
        ("nodes", {"A": "error"}, ["node A", "'error'", "'done'"]),
        ("nodes", {"X": "done"}, ["node X", "'done'", "None"]),
        ("attempts", {"A": 2}, ["runs of A", "expected 2", "found 1"]),
        ("attempts", {"A.pre": 1}, ["runs of A.pre", "expected 1", "found 0"]),
        ("procs", {"A": 3}, ["processes of A", "expected 3", "found 1"]),
        ("order", [["B", "A"]], ["B ended", "A had started"]),
        ("order", [["A", "X"]], ["no X"]),
        ("not_order", [["A", "B"]], ["B did not start", "A ended"]),
        ("start_order", ["B", "A"], ["expected B A", "found A B"]),
        ("start_order_any", [["B", "A"], ["B"]], ["one of B A, B", "found A B"]),
        ("args", {"B.pre": [["two"]]}, ["B.pre", "[['two']]", "[['one']]"]),
        ("max_running", {"*": 0}, ["at most 0", "found 1"]),
        ("rescue_done", ["A"], ["['A']", "None"]),
        ("rescue_file", ".rescue001", [".rescue001", "''"]),
        ("files_exist", [".rescue001"], ["case.dag.rescue001"]),
        ("file_contains", {"x.txt": ["y"]}, ["no file x.txt"]),
        ("file_contains", {"job.sh": ["y"]}, ["job.sh", "'y'", "#!/bin/sh"]),
        ("json_contains", {"job.sh": {"a": 1}}, ["job.sh", "not JSON"]),
        ("json_contains", {"case.dag.metrics": {"exitcode": 7}}, ["exitcode", "7", "0"]),
        ("error", "no such", ["'no such'", "[]"]),
        ("error_at", ["case.dag", 1], ["case.dag:1", "[]"]),
    ],
)
def test_a_difference_has_the_expectation_and_both_values(
    expectation: str, value: Any, facts: list[str]
):
    [difference] = differences(CHAIN, {expectation: value})

    assert difference.expectation == expectation
    assert [fact for fact in facts if fact not in difference.message] == []


def test_what_agrees_says_nothing():
    expect = {
        "dag_state": "success",
        "dag_status": [0, 2],
        "nodes": {"A": "done", "B": ["done", "error"]},
        "attempts": {"A": 1, "B.pre": 1, "A.post": 0},
        "order": [["A", "B.pre"], ["B.pre", "B"]],
        "start_order_any": [["B", "A"], ["A", "B"]],
        "max_running": {"*": 1, "*.pre": 1},
        "rescue_done": None,
        "rescue_file": "",
        "files_exist": [".metrics"],
    }

    assert differences(CHAIN, expect) == []


def test_a_rescue_that_is_not_expected_is_a_difference():
    [difference] = differences("JOB A A.sub\n", {"rescue_done": None}, behaviour={"A": [1]})

    assert difference.expectation == "rescue_done"
    assert "case.dag.rescue001" in difference.message


def test_a_refused_cycle_agrees_with_a_case_that_expects_one():
    expect = {"dag_state": "cycle", "dag_status": 5, "attempts": {"A": 1}}

    assert differences("JOB A A.sub\nPARENT A CHILD A\n", expect) == []


def test_another_refusal_does_not():
    expect = {"dag_state": "cycle"}

    [difference] = differences("JOB A A.sub\nRETRY A x\n", expect)
    assert difference.expectation == "cycle"
    assert "case.dag:2" in difference.message


def test_a_difference_of_a_further_submission_has_its_number():
    [difference] = differences("JOB A A.sub\n", {}, then=[{"expect": {"attempts": {"A": 0}}}])

    assert (difference.submission, difference.expectation) == (2, "attempts")
    assert str(difference).startswith("submission 2: ")


def test_a_run_that_cannot_end_is_unfinished():
    [difference] = differences(
        "JOB A A.sub\n", {"dag_state": "success"}, behaviour={"A": ["hold:0"]}
    )

    assert difference.expectation == "dag_state"
    assert "unfinished (running)" in difference.message


def test_nothing_of_a_case_is_left():
    differences(CHAIN, {})

    assert not Dag.objects.exists()
    assert not User.objects.exists()


def test_a_case_that_breaks_the_simulation_does_not_stop_the_others():
    """Its DAG file is no file name that a workspace can have."""
    broken = {"name": "broken", "dag": "", "options": {"extra_dags": [1]}}
    whole = {"name": "whole", "dag": "JOB A A.sub\n", "expect": {"dag_state": "success"}}

    results = list(run_cases(read_cases(json.dumps([broken, whole]), file="cases.json")))

    assert [result.is_passed for result in results] == [False, True]
    assert results[0].differences[0].expectation == "exception"
