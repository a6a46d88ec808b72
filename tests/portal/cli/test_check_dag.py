"""`manage.py check_dag`, once as a program with an empty environment: no database, no settings.

Its other tests run it in this process, where no database may be asked either.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import execute_from_command_line

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"


Check = Callable[..., subprocess.CompletedProcess[str]]


def check_as_a_program(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(MANAGE), "check_dag", *map(str, arguments)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PILOTAGE_VAR": str(cwd / "var")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """The command in this process."""

    def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        words = ["manage.py", "check_dag", *map(str, arguments)]
        with pytest.raises(SystemExit) as end:
            execute_from_command_line(words)
        told = capsys.readouterr()
        return subprocess.CompletedProcess(words, int(end.value.code or 0), told.out, told.err)

    return run


def _numbers(line: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", line)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "dag").mkdir()
    (tmp_path / "dag" / "a.sub").write_text("executable = /bin/true\nqueue\n")
    (tmp_path / "outside.dag").write_text("JOB X a.sub\n")
    return tmp_path


@pytest.mark.process
def test_a_dag_without_faults_is_told_with_its_shape(place: Path) -> None:
    (place / "dag" / "a.dag").write_text("JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n")

    done = check_as_a_program("dag/a.dag", cwd=place)

    shape, counts = done.stdout.splitlines()
    assert (_numbers(shape), _numbers(counts)) == ([2, 1, 2, 1], [0, 0])
    assert (done.returncode, done.stderr) == (0, "")


def test_faults_are_told_for_people_and_for_programs(place: Path, check: Check) -> None:
    (place / "dag" / "a.dag").write_text(
        "JOB A a.sub\nPARENT A CHILD A\nRETRY A x\nSCRIPT PRE A /bin/x $WHAT\n"
    )

    for_people = check("a.dag", cwd=place / "dag")
    for_programs = check("a.dag", "--json", cwd=place / "dag")

    *findings, shape, counts = for_people.stdout.splitlines()
    assert [finding.split(": ")[:3] for finding in findings] == [
        ["a.dag:2", "error", "PARENT"],
        ["a.dag:3", "error", "RETRY"],
        ["a.dag:4", "warning", "SCRIPT"],
    ]
    assert (_numbers(shape), _numbers(counts)) == ([1, 1, 0, 0], [2, 1])
    answer = json.loads(for_programs.stdout)
    assert answer["errors"][0] == {
        "reason": findings[0].partition(": PARENT: ")[2],
        "file": "a.dag",
        "line": 2,
        "command": "PARENT",
    }
    assert [each["line"] for each in answer["warnings"]] == [4]
    assert answer["statistics"]["cycle"] == ["A", "A"]
    assert (for_people.returncode, for_programs.returncode) == (1, 1)


def test_nothing_outside_of_the_directory_is_read(place: Path, check: Check) -> None:
    (place / "dag" / "link.dag").symlink_to(place / "outside.dag")
    (place / "dag" / "inside.dag").symlink_to(place / "dag" / "more.dag")
    (place / "dag" / "more.dag").write_text("JOB Y a.sub\n")
    (place / "dag" / "a.dag").write_text(
        "SPLICE S link.dag\nSPLICE T ../outside.dag\nSPLICE U inside.dag\n"
        f"INCLUDE {place / 'outside.dag'}\nJOB A ../dag/a.sub\n"
    )

    done = check("--json", "dag/a.dag", cwd=place)

    answer = json.loads(done.stdout)
    assert [(each["line"], each["command"]) for each in answer["errors"]] == [
        (1, "SPLICE"),
        (2, "SPLICE"),
        (4, "INCLUDE"),
        (5, "JOB"),
    ]
    assert answer["statistics"]["nodes"] == 2


def test_several_files_are_checked_as_one_dag(place: Path, check: Check) -> None:
    (place / "dag" / "a.dag").write_text("JOB A a.sub\n")
    (place / "dag" / "b.dag").write_text("JOB A none.sub\n")

    done = check("dag/a.dag", "dag/b.dag", "--allow-missing", cwd=place)

    finding, shape, counts = done.stdout.splitlines()
    assert finding.split(": ")[:3] == ["b.dag:1", "warning", "JOB"]
    assert {"none.sub", "1.A"} <= set(finding.split())
    assert (_numbers(shape), _numbers(counts)) == ([2, 0, 1, 2], [0, 1])
    assert done.returncode == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder of which each of three parts names another one."""
    tree = tmp_path / "proj"
    (tree / "run" / "dags").mkdir(parents=True)
    (tree / "common").mkdir()
    (tree / "common" / "a.sub").write_text("executable = /bin/true\nqueue\n")
    (tree / "run" / "dags" / "x.dag").write_text(
        f"JOB A ../common/a.sub\nJOB B {tree}/common/a.sub\nSPLICE S dags/s.dag\n"
    )
    (tree / "run" / "dags" / "s.dag").write_text("JOB C a.sub DIR ../common\n")
    return tree


def test_names_are_looked_up_from_where_the_dag_would_be_submitted(
    tree: Path, check: Check
) -> None:
    done = check("dags/x.dag", "--directory", ".", "--root", "..", cwd=tree / "run")

    shape, counts, submission = done.stdout.splitlines()
    assert (_numbers(shape), _numbers(counts)) == ([3, 0, 1, 3], [0, 0])
    assert submission.endswith(f"directory=run root={tree}")
    assert done.returncode == 0


def test_names_that_lead_out_are_told_with_what_to_say(tree: Path, check: Check) -> None:
    done = check("dags/x.dag", "--directory", ".", cwd=tree / "run")

    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert [line.split()[:4] for line in told[:2]] == [
        ["dags/s.dag:1:", "error:", "JOB:", "../common"],
        ["dags/x.dag:1:", "error:", "JOB:", "../common/a.sub"],
    ]
    assert "directory" in told[1].split()
    assert told[2].endswith(f"as in root={tree}/common")


def test_names_may_be_looked_up_from_the_folders_of_the_dag_files(tree: Path, check: Check) -> None:
    (tree / "common" / "y.dag").write_text("JOB A a.sub\n")

    done = check("run/dags/s.dag", "common/y.dag", "--root", ".", "--usedagdir", cwd=tree)

    finding = done.stdout.splitlines()[0]
    assert finding.split(": ")[:3] == ["run/dags/s.dag:1", "error", "JOB"]
    assert "run/common/a.sub" in finding.split()
    assert "y.dag" not in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f" root={tree} use_dag_dir=true")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nothing.dag"], "nothing.dag is no file"),
        (["none/nothing.dag"], "none: No such file or directory"),
        (["dag/a.sub", "outside.dag"], "outside.dag is not below dag"),
        ([], "required: FILE"),
        (["d", "--directory", "dag", "--root", ".", "--usedagdir"], "use_dag_dir: names"),
        (["dag/a.dag", "--directory", ".", "--root", "dag"], "directory: "),
    ],
)
def test_a_check_that_cannot_be_made_ends_with_two(
    place: Path, check: Check, arguments, reason: str
) -> None:
    done = check(*arguments, cwd=place)

    assert done.returncode == 2
    assert reason in done.stderr
