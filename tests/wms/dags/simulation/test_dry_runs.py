from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from wms.core.errors import InvalidInput
from wms.dags.models import Dag
from wms.dags.simulation.dry_run.dry_runs import DryRunResult, dry_run, read_dry_run_settings
from wms.dags.simulation.dry_run.local_folder import read_local_folder
from wms.dags.simulation.dry_run.text_report import duration_text, text_report

pytestmark = pytest.mark.django_db

DIAMOND = """\
JOB A step.sub
JOB B step.sub
JOB C step.sub
JOB D step.sub
PARENT A CHILD B C
PARENT B C CHILD D
"""
SUBMIT_FILE = "executable = step.sh\nqueue\n"
US = 1_000_000

Try = Callable[..., DryRunResult]


@pytest.fixture
def try_out(tmp_path: Path) -> Try:
    """Write a DAG file and others into a folder, and try it."""

    def make(dag: str, *, files: Mapping[str, str] | None = None, **behaviour: Any) -> DryRunResult:
        known = {"my.dag": dag, "step.sub": SUBMIT_FILE, "step.sh": "", **(files or {})}
        for path, text in known.items():
            place = tmp_path / path
            place.parent.mkdir(exist_ok=True, parents=True)
            place.write_text(text, encoding="utf-8")
        return dry_run(
            read_local_folder(tmp_path, ["my.dag"]), ["my.dag"], read_dry_run_settings(behaviour)
        )

    return make


def test_a_dry_run_tells_how_long_it_takes_and_why(try_out: Try):
    result = try_out(DIAMOND, duration={"B": 100, "*": 10})

    assert result.outcome.dag_state == "success"
    assert result.duration_us == 120 * US
    assert [(step.name, step.duration_us) for step in result.critical_path] == [
        ("A", 10 * US),
        ("B", 100 * US),
        ("D", 10 * US),
    ]
    assert result.never_ran == []
    assert result.warnings == []


def test_what_never_runs_is_told_with_the_node_that_failed(try_out: Try):
    result = try_out(DIAMOND, B=[1])

    assert [(each.name, each.state, each.why) for each in result.never_ran] == [
        ("D", "futile", "B failed")
    ]
    assert result.outcome.rescue_done == ["A", "C"]


def test_nothing_of_a_dry_run_is_left(try_out: Try, tmp_path: Path):
    try_out(DIAMOND, B=[1])

    assert not Dag.objects.exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "my.dag",
        "step.sh",
        "step.sub",
    ]


def test_slots_make_jobs_wait(try_out: Try):
    dag = "".join(f"JOB N{number} step.sub\n" for number in range(6))

    result = try_out(dag, duration={"*": 10}, options={"slots": 2})

    assert result.duration_us == 30 * US


def test_a_limit_of_idle_jobs_lets_the_next_in_as_jobs_start(try_out: Try):
    dag = "".join(f"JOB N{number} step.sub\n" for number in range(6))

    result = try_out(dag, duration={"*": 10}, options={"max_idle": 1})

    assert result.outcome.dag_state == "success"
    assert result.duration_us == 10 * US


def test_a_fault_is_told_with_its_line_and_nothing_runs(try_out: Try):
    result = try_out("JOB A step.sub\nRETRY A many\n")

    assert result.outcome.dag_state == "invalid"
    [finding] = result.outcome.findings
    assert (finding.file, finding.line) == ("my.dag", 2)
    assert "my.dag:2: error: RETRY:" in text_report(result, "my.dag")


def test_missing_programs_are_warnings(try_out: Try):
    result = try_out(
        "JOB A other.sub\nSCRIPT PRE A check.sh $JOB\n",
        files={"other.sub": "executable = other.sh\nqueue\n"},
    )

    assert result.outcome.dag_state == "success"
    messages = " ".join(str(warning) for warning in result.warnings)
    assert "check.sh" in messages
    assert "other.sh" in messages


def test_an_inner_dag_that_is_not_there_yet_is_taken_as_empty(try_out: Try):
    result = try_out("SUBDAG EXTERNAL S later.dag\nJOB A step.sub\nPARENT S CHILD A\n")

    assert result.outcome.dag_state == "success"
    [warning] = result.warnings
    assert (warning.file, warning.line) == ("my.dag", 1)
    assert "later.dag" in warning.message


def test_a_description_that_a_pre_script_writes_is_taken_as_one_job(try_out: Try):
    result = try_out("JOB A late.sub\nSCRIPT PRE A step.sh\n")

    assert result.outcome.dag_state == "success"
    [warning] = result.warnings
    assert (warning.file, warning.line) == ("my.dag", 1)
    assert "late.sub" in warning.message


def test_inner_dags_and_splices_are_read_from_the_folder(try_out: Try):
    result = try_out(
        "SPLICE P in.dag DIR sub\nSUBDAG EXTERNAL S inner.dag\nPARENT P CHILD S\n",
        files={
            "sub/in.dag": "JOB A a.sub\n",
            "sub/a.sub": "executable = /bin/true\nqueue\n",
            "inner.dag": "JOB X step.sub\n",
        },
    )

    assert result.outcome.trace.attempts == {"P+A": 1, "S": 1, "X": 1}


def test_what_sites_give_stands_for_itself_unless_it_is_told(try_out: Try):
    files = {"a.sub": "executable = step.sh\narguments = $ENV(Area) $$(Disk)\nqueue\n"}

    result = try_out("JOB A a.sub\n", files=files, site={"environment": {"Area": "/data"}})

    [run] = result.outcome.trace.components["A"]
    assert run.arguments == ("/data", "Disk")
    [warning] = result.warnings
    assert "$$(Disk)" in warning.message
    assert "$ENV(Area)" not in warning.message


def test_provisioners_and_services_do_their_part(try_out: Try):
    result = try_out(
        "PROVISIONER P step.sub\nSERVICE S step.sub\nJOB A step.sub\n", duration={"A": 1000}
    )

    assert result.outcome.dag_state == "success"
    assert result.spans["S"].end_us == result.spans["A"].end_us


def test_a_newest_rescue_in_the_folder_is_taken(try_out: Try):
    result = try_out(DIAMOND, files={"my.dag.rescue003": "DONE A\nDONE B\n"})

    assert "A" not in result.outcome.trace.attempts
    assert [step.name for step in result.critical_path] == ["C", "D"]


def test_names_that_the_dag_does_not_have_are_warnings(try_out: Try):
    result = try_out(DIAMOND, X=[1], duration={"Y.pre": 3})

    assert [warning.field for warning in result.warnings] == ["behaviour", "behaviour"]
    for name, warning in zip("XY", result.warnings, strict=True):
        assert f"no node {name}" in warning.message


def test_the_report_shows_nodes_times_and_the_critical_path(try_out: Try):
    text = text_report(try_out(DIAMOND, B=[1, 0], duration={"*": 60}), "my.dag")

    lines = text.splitlines()
    assert lines[0].startswith("my.dag: failed")
    assert "A     done    1                       0:00:00  0:01:00" in lines
    assert "0:02:00" in text
    assert "0:03:00" in text
    assert "critical path:\n  A: 0:01:00\n  " in text
    assert "  D (futile): " in text
    assert "my.dag.rescue001" in lines[-1]


def test_a_dry_run_that_cannot_end_says_so(try_out: Try):
    result = try_out("JOB A step.sub\n", A=["hold:0"])

    assert result.outcome.dag_state == "unfinished (running)"


@pytest.mark.parametrize(
    "behaviour", [{"options": 1}, {"site": {"colour": "red"}}, {"site": {"tags": 1}}]
)
def test_what_is_no_behaviour_is_refused(behaviour: dict[str, Any]):
    with pytest.raises(InvalidInput):
        read_dry_run_settings(behaviour)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "0:00:00"), (500_000, "0.5 s"), (61 * US, "0:01:01"), (90_061 * US, "25:01:01")],
)
def test_times_are_told_as_people_do(microseconds: int, text: str):
    assert duration_text(microseconds) == text
