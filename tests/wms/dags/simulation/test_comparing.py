"""What differs from what a case expects is told; a case that agrees says nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.simulation.cases import read_cases
from wms.dags.simulation.conformance import run_cases

pytestmark = pytest.mark.django_db

CHAIN = "JOB A A.sub\nJOB B B.sub\nPARENT A CHILD B\nSCRIPT PRE B pre.sh $JOB one\n"


def differences(dag: str, expect: dict[str, Any], **more: Any) -> list[str]:
    text = json.dumps([{"name": "case", "dag": dag, "expect": expect, **more}])
    [verdict] = run_cases(read_cases(text, file="cases.json"))
    return verdict.differences


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ({"dag_state": "failed"}, "dag_state: expected 'failed', found 'success'"),
        ({"dag_status": [1, 2]}, "dag_status: expected [1, 2], found 0"),
        ({"exit_code": 1}, "exit_code: expected 1, found 0"),
        ({"nodes": {"A": "error"}}, "node A: expected 'error', found 'done'"),
        ({"nodes": {"X": "done"}}, "node X: expected 'done', found None"),
        ({"attempts": {"A": 2}}, "runs of A: expected 2, found 1"),
        ({"attempts": {"A.pre": 1}}, "runs of A.pre: expected 1, found 0"),
        ({"procs": {"A": 3}}, "processes of A: expected 3, found 1"),
        ({"order": [["B", "A"]]}, "order: B ended after A had started"),
        ({"order": [["A", "X"]]}, "order: there is no X"),
        ({"not_order": [["A", "B"]]}, "not_order: B did not start before A ended"),
        ({"start_order": ["B", "A"]}, "start order: expected B A, found A B"),
        ({"start_order_any": [["B", "A"], ["B"]]},
         "start order: expected one of B A, B, found A B"),
        ({"args": {"B.pre": [["two"]]}}, "arguments of B.pre: expected [['two']], found [['one']]"),
        ({"max_running": {"*": 0}}, "running at once of *: expected at most 0, found 1"),
        ({"rescue_done": ["A"]}, "rescue: expected ['A'], found None"),
        ({"rescue_file": ".rescue001"},
         "rescue file: expected one that ends in .rescue001, found ''"),
        ({"files_exist": [".rescue001"]}, "there is no file case.dag.rescue001"),
        ({"file_contains": {"x.txt": ["y"]}}, "there is no file x.txt"),
        ({"file_contains": {"job.sh": ["y"]}}, "job.sh does not contain 'y': '#!/bin/sh\\n'"),
        ({"json_contains": {"job.sh": {"a": 1}}}, "there is no file job.sh, or it is not JSON"),
        ({"json_contains": {"case.dag.metrics": {"exitcode": 7}}},
         "case.dag.metrics: exitcode: expected 7, found 0"),
        ({"error": "no such"}, "error: expected 'no such' in the messages, found []"),
        ({"error_at": ["case.dag", 1]}, "error: expected one at case.dag:1, found them at []"),
    ],
)  # fmt: skip
def test_each_difference_is_told(expect: dict[str, Any], told: str):
    assert differences(CHAIN, expect) == [told]


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


def test_a_rescue_that_is_not_expected_is_told():
    told = differences("JOB A A.sub\n", {"rescue_done": None}, behaviour={"A": [1]})

    assert told == ["rescue: expected none, found case.dag.rescue001 with []"]


def test_a_refused_cycle_agrees_with_a_case_that_expects_one():
    expect = {"dag_state": "cycle", "dag_status": 5, "attempts": {"A": 1}}

    assert differences("JOB A A.sub\nPARENT A CHILD A\n", expect) == []


def test_another_refusal_does_not():
    expect = {"dag_state": "cycle"}

    [told] = differences("JOB A A.sub\nRETRY A x\n", expect)
    assert told.startswith("refused, but not for a cycle: case.dag:2")


def test_differences_of_a_further_submission_name_it():
    told = differences("JOB A A.sub\n", {}, then=[{"expect": {"attempts": {"A": 0}}}])

    assert told == ["submission 2: runs of A: expected 0, found 1"]


def test_a_run_that_cannot_end_is_told_as_such():
    [told] = differences("JOB A A.sub\n", {"dag_state": "success"}, behaviour={"A": ["hold:0"]})

    assert told == "dag_state: expected 'success', found 'unfinished (running)'"


def test_nothing_of_a_case_is_left():
    differences(CHAIN, {})

    assert not Dag.objects.exists()
    assert not User.objects.exists()


def test_a_case_that_breaks_the_simulation_does_not_stop_the_others():
    """Its DAG file is no file name that a workspace can have."""
    broken = {"name": "broken", "dag": "", "options": {"extra_dags": [1]}}
    whole = {"name": "whole", "dag": "JOB A A.sub\n", "expect": {"dag_state": "success"}}

    verdicts = list(run_cases(read_cases(json.dumps([broken, whole]), file="cases.json")))

    assert [verdict.is_passed for verdict in verdicts] == [False, True]
    assert verdicts[0].differences[0].startswith("the simulation broke down")
