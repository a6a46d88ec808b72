from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

BASE = Path(__file__).resolve().parents[3]
CASES = [
    {"name": "good", "dag": "JOB A A.sub\n", "expect": {"dag_state": "success"}},
    {"name": "bad", "dag": "JOB A A.sub\n", "expect": {"dag_state": "failed", "exit_code": 1}},
]


def run(*words: str | Path) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("simulate_dag", *map(str, words), stdout=out, stderr=err)
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def cases_file(tmp_path: Path) -> Path:
    place = tmp_path / "cases.json"
    place.write_text(json.dumps(CASES), encoding="utf-8")
    return place


@pytest.fixture
def dag_file(tmp_path: Path) -> Path:
    place = tmp_path / "my.dag"
    place.write_text("JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n", encoding="utf-8")
    (tmp_path / "a.sub").write_text("executable = /bin/true\nqueue\n", encoding="utf-8")
    return place


@pytest.mark.django_db
def test_cases_are_told_one_by_one_and_counted(cases_file: Path):
    code, out, _ = run("--cases", cases_file)

    assert code == 1
    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        ["good", "pass"],
        ["bad", "dag_state"],
        ["bad", "exit_code"],
        ["1 passed, 1 failed"],
    ]
    assert "expected 'failed', found 'success'" in out
    assert "expected 1, found 0" in out


@pytest.mark.django_db
def test_one_case_can_be_chosen(cases_file: Path):
    code, out, _ = run("--cases", cases_file, "--name", "good")

    assert code == 0
    assert out.splitlines() == ["good: pass", "1 passed, 0 failed"]


@pytest.mark.django_db
def test_cases_are_told_to_programs(cases_file: Path):
    _, out, _ = run("--cases", cases_file, "--json")

    found = json.loads(out)
    assert [(each["name"], each["passed"]) for each in found] == [("good", True), ("bad", False)]


@pytest.mark.django_db
def test_a_dag_file_is_tried_with_the_files_beside_it(dag_file: Path):
    code, out, err = run(dag_file)

    assert code == 0
    assert "my.dag: success, exit code 0" in out
    assert "It would take 0:02:00" in out
    assert "Trying the DAG" in err


@pytest.mark.django_db
def test_a_dag_that_would_fail_gives_1(dag_file: Path, tmp_path: Path):
    behaviour = tmp_path / "b.json"
    behaviour.write_text('{"A": [2], "duration": {"A": 7}}', encoding="utf-8")

    code, out, _ = run(dag_file, "--behaviour", behaviour, "--json")

    found: dict[str, Any] = json.loads(out)
    assert code == 1
    assert found["dag_state"] == "failed"
    assert found["duration_s"] == 7.0
    assert found["never_ran"] == [{"node": "B", "state": "futile", "why": "A failed"}]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("my.dag", "--cases", "cases.json"),
        ("nowhere.dag",),
        ("--cases", "nowhere.json"),
        ("--cases", "cases.json", "--name", "none"),
        ("my.dag", "--behaviour", "my.dag"),
        ("my.dag", "../../etc/hosts"),
    ],
)
def test_what_cannot_be_tried_gives_2(
    words: tuple[str, ...],
    dag_file: Path,
    cases_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError) as refused:
        call_command("simulate_dag", *words)

    assert refused.value.returncode == 2


@pytest.mark.process
@pytest.mark.slow
def test_the_command_brings_its_own_database_and_leaves_the_other_alone(
    dag_file: Path, tmp_path: Path
):
    """With nothing running, and with the address of a database that is not to be touched."""
    kept = tmp_path / "var"
    environment = {
        **os.environ,
        "PILOTAGE_VAR": str(kept),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/production",
    }
    del environment["REDIS_URL"]

    runs = [
        subprocess.run(
            [sys.executable, "manage.py", "simulate_dag", str(dag_file)],
            cwd=BASE, env=environment, capture_output=True, text=True, timeout=600,
        )
        for _ in range(2)
    ]  # fmt: skip

    assert [done.returncode for done in runs] == [0, 0], runs[0].stderr
    assert all("my.dag: success" in done.stdout for done in runs)
    assert "Preparing" in runs[0].stderr
    assert "Preparing" not in runs[1].stderr
    assert [path.name for path in kept.iterdir()] == ["simulation"]


@pytest.mark.django_db
def test_names_of_inner_dags_too_are_looked_up_below_the_root(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "a.sub").write_text("executable = /bin/true\nqueue\n")
    (tmp_path / "common" / "in.dag").write_text(
        f"JOB B {tmp_path}/common/a.sub\nSCRIPT PRE B {tmp_path}/run/pre.sh\n"
    )
    (tmp_path / "run" / "pre.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run" / "x.dag").write_text(
        "JOB A ../common/a.sub\nSUBDAG EXTERNAL I ../common/in.dag\nPARENT A CHILD I\n"
    )

    code, out, _ = run(tmp_path / "run" / "x.dag", "--root", tmp_path, "--json")

    told = json.loads(out)
    assert (code, told["warnings"]) == (0, [])
    assert told["nodes"] == {"A": "done", "I": "done", "B": "done"}
