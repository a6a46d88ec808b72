from __future__ import annotations

from dataclasses import fields

import pytest

from tests.wms.dags.language.parsing import (
    fault_locations,
    faults,
    read,
    warning_locations,
    warnings,
    well_read,
)
from wms.dags.language.commands.config import OPTIONS
from wms.dags.language.parser import parse_dag
from wms.dags.language.spec import RunOptions
from wms.dags.states import ScriptKind

CONFIG = """\
# Limits
dagman_max_jobs_submitted = 5
DAGMAN_MAX_PRE_SCRIPTS=\\
  2
DAGMAN_ALWAYS_RUN_POST = Yes
DAGMAN_RETRY_NODE_FIRST = false
DAGMAN_DEFAULT_PRIORITY = -3
DAGMAN_MAX_RESCUE_NUM = 0
"""


def test_a_config_file_sets_how_the_dag_is_run() -> None:
    dag = well_read("CONFIG my.cfg\nCONFIG ./my.cfg", {"my.cfg": CONFIG})

    assert dag.options == {
        "max_jobs": 5,
        "max_pre": 2,
        "always_run_post": True,
        "retry_node_first": False,
        "priority": -3,
        "max_rescue": 0,
    }
    assert dag.warnings == []


def test_every_setting_is_one_of_a_run() -> None:
    assert {option for option, _ in OPTIONS.values()} == {each.name for each in fields(RunOptions)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DAGMAN_MAX_JOBS_SUBMITTED = many", "DAGMAN_MAX_JOBS_SUBMITTED: the value is a whole"),
        ("DAGMAN_MAX_JOBS_IDLE = -1", "found: -1"),
        ("DAGMAN_ALWAYS_RUN_POST = maybe", "the value is true or false, found: maybe"),
        ("DAGMAN_MAX_RESCUE_NUM = 1000", "from 0 to 999, found: 1000"),
        ("STORK_MAX_RETRY = 0", "from 1 to 100, found: 0"),
        ("STORK_MAX_RETRY = 101", "from 1 to 100, found: 101"),
        ("DAGMAN_USE_STRICT = 4", "from 0 to 3, found: 4"),
        ("what is this", "expected NAME = value, found: what is this"),
    ],
)
def test_a_fault_in_a_config_file_is_told_there(line: str, message: str) -> None:
    ((file, number, told),) = faults("CONFIG my.cfg", {"my.cfg": f"\n{line}"})

    assert (file, number) == ("my.cfg", 2)
    assert message in told


def test_settings_that_do_nothing_here_are_warned_of() -> None:
    ((file, line, message),) = warnings("CONFIG c", {"c": "DAGMAN_USE_JOIN_NODES = True\n"})

    assert (file, line) == ("c", 1)
    assert "DAGMAN_USE_JOIN_NODES" in message


def test_a_run_has_one_config_file() -> None:
    files = {"a.dag": "CONFIG a.cfg", "b.dag": "\nCONFIG b.cfg", "a.cfg": "", "b.cfg": ""}

    (finding,) = parse_dag(["a.dag", "b.dag"], files.get).findings

    assert (finding.file, finding.line) == ("b.dag", 2)
    assert "a.cfg of a.dag" in finding.message


@pytest.mark.parametrize(("strictness", "is_fault"), [(0, False), (1, True), (3, True)])
def test_a_strict_run_refuses_macros_that_mean_nothing(strictness: int, is_fault: bool) -> None:
    dag = read(
        "JOB A a\nSCRIPT PRE A x $WHAT\nCONFIG c",
        {"c": f"DAGMAN_USE_STRICT = {strictness}"},
    )

    assert [each.line for each in dag.findings] == ([2] if is_fault else [])
    assert [each.line for each in dag.warnings] == ([] if is_fault else [2])


@pytest.mark.parametrize(
    ("lines", "environment"),
    [
        ("ENV SET a=1;b=2 3\nenv set b=4", {"a": "1", "b": "4"}),
        ("ENV SET \"a=1 b='2 3'\"", {"a": "1", "b": "2 3"}),
    ],
)
def test_scripts_are_given_an_environment(lines: str, environment: dict[str, str]) -> None:
    assert well_read(lines).environment == environment


def test_there_is_no_environment_of_who_submits() -> None:
    text = "ENV GET PATH HOME"

    assert warning_locations(text) == [("case.dag", 1)]


def test_the_dag_has_attributes() -> None:
    dag = well_read('SET_JOB_ATTR Campaign = "2026, spring"\nset_job_attr n=1 + 1')

    assert dag.attributes == {"Campaign": '"2026, spring"', "n": "1 + 1"}


def test_files_are_asked_for_and_the_first_of_a_kind_counts() -> None:
    dag = well_read(
        "NODE_STATUS_FILE st 30 ALWAYS-UPDATE\nJOBSTATE_LOG log\nJOBSTATE_LOG log2\n"
        "DOT d.dot update DONT_OVERWRITE INCLUDE head.dot\nNODE_STATUS_FILE x"
    )

    assert (dag.status_file, dag.jobstate_log, dag.dot_file) == ("st", "log", "d.dot")
    assert [(each.line, each.command) for each in dag.warnings] == [
        (3, "JOBSTATE_LOG"),
        (5, "NODE_STATUS_FILE"),
    ]


def test_settings_in_included_files_have_no_effect() -> None:
    dag = well_read("INCLUDE more", {"more": "SET_JOB_ATTR a = 1\nDOT d.dot"})

    assert dag.attributes == {}
    assert dag.dot_file == "d.dot"
    assert [(each.file, each.line) for each in dag.warnings] == [("more", 1)]


def test_the_environment_of_scripts_is_bounded() -> None:
    text = f"ENV SET a={'x' * 60_000}\n"
    assert len(well_read(f"{text}ENV SET b={'x' * 5_000}").environment["b"]) == 5_000

    for more in (f"ENV SET b={'x' * 6_000}", f"ENV SET b={'x' * 1_000_000}"):
        assert fault_locations(text + more) == [("case.dag", 2)]


@pytest.mark.parametrize(
    "options", ["", "60", "ALWAYS-UPDATE", "82 ALWAYS-UPDATE 1000", "always_update 5 -1"]
)
def test_the_options_of_a_status_file_stand_in_any_order(options: str) -> None:
    assert well_read(f"NODE_STATUS_FILE f {options}").status_file == "f"


def test_a_script_that_is_put_off_waits_for_a_second_at_least() -> None:
    dag = well_read("JOB A a\nSCRIPT DEFER 4 0 PRE A x")

    assert dag.nodes["A"].scripts[ScriptKind.PRE].defer_s == 1
    assert [each.line for each in dag.warnings] == [2]
