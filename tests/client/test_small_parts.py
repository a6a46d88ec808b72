"""Small parts of the client: constraints, names of objects, ends of watching, its own promises."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import zipapp_main
from pilotage_client.cli.constraints import constraint
from pilotage_client.cli.explaining import explained
from pilotage_client.cli.lists import lack_of
from pilotage_client.cli.printing import print_rows
from pilotage_client.cli.targets import target
from pilotage_client.cli.watching import read_exit
from pilotage_client.errors import NoAnswer, UsageError
from pilotage_client.files.sinks import FileSink, place_below

CLIENT = Path(__file__).parents[2] / "client"
UUID = "8bdf402e-deb0-43aa-b911-66209cca7ae6"
DAG: dict[str, Any] = {
    "id": 7, "state": "failed", "owner": "alice", "site": None, "is_followed": False,
    "nodes": {"total": 12, "failed": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ('state == "FAILED"', True),
        ('state =?= "FAILED"', False),
        ('State != "done" && nodes.total >= 12', True),
        ("nodes.failed > 2 || id == 7", True),
        ("!is_followed", True),
        ("!(id == 7)", False),
        ("site == \"UW\"", False),
        ("site =?= undefined", True),
        ("site =!= undefined", False),
        ("no.such < 3", False),
        ("state < 3", False),
        ("-1 < nodes.failed && true", True),
        ("id", False),
    ],
)  # fmt: skip
def test_constraints_are_true_or_not(text: str, is_true: bool) -> None:
    assert constraint(text)(DAG) is is_true


@pytest.mark.parametrize("text", ["", "id ==", "(id == 7", "id == 7)", "id = 7", "id == 7 id", "§"])
def test_a_constraint_with_a_fault_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        constraint(text)


@pytest.mark.parametrize(
    ("text", "kind", "number", "name"),
    [
        ("7", "dag", 7, ""),
        ("d7", "dag", 7, ""),
        ("cluster:12", "cluster", 12, ""),
        ("j42", "job", 42, ""),
        ("7/A/b", "node", 7, "A/b"),
        ("s:T2_X", "site", 0, "T2_X"),
        ("q5", "task_queue", 5, ""),
        (
            "8bdf402e-deb0-43aa-b911-66209cca7ae6",
            "pilot",
            0,
            "8bdf402e-deb0-43aa-b911-66209cca7ae6",
        ),
    ],
)
def test_objects_are_named_by_a_letter_and_a_number(
    text: str, kind: str, number: int, name: str
) -> None:
    found = target(text)

    assert (found.kind, found.id, found.name) == (kind, number, name)


def test_an_object_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError):
        target("j42", "dag")
    with pytest.raises(UsageError):
        target("x")


def test_who_names_a_cluster_in_place_of_a_job_is_told_how_to_list_its_jobs() -> None:
    with pytest.raises(UsageError, match="pilotage q c98 --jobs"):
        target("c98", "job", "node", "pilot")


def test_an_explanation_begins_with_its_verdict_and_whether_waiting_helps() -> None:
    miss = {"attribute": "Requirements", "old": "a", "new": "", "before": 0, "after": 2}
    never = {"verdict": "never", "summary": "No.", "misses": [{**miss, "is_enough": False}]}

    first, second = explained(never)

    assert first == "Never (waiting does not help): No."
    assert "without it: 2 sites agree" in second
    assert [*explained({"verdict": "has ended", "summary": "It is done."})] == ["It is done."]


def test_an_end_of_watching_is_read_in_any_order() -> None:
    assert read_exit("done,none") == read_exit("none,done")
    assert read_exit("failed,any,3").code == 3
    for text in ("done", "any,all", "done,failed", "done,any,x"):
        with pytest.raises(UsageError):
            read_exit(text)


def test_a_file_that_came_incomplete_is_not_kept(own_place: Path) -> None:
    sink = FileSink(own_place / "a")
    sink.begin(10)
    sink.write(b"12345")

    with pytest.raises(NoAnswer):
        sink.keep("")
    assert list(own_place.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "link/x"])
def test_no_fetched_file_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)

    with pytest.raises(UsageError):
        place_below(folder, name)


@pytest.mark.process
def test_the_command_line_is_read_without_what_only_some_commands_need() -> None:
    """Else every call would take three times as long to begin."""
    program = (
        "import sys\nfrom pilotage_client.cli.main import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'httpx', 'rich', 'shtab', 'asyncio', 'ssl'} & set(sys.modules)))\n"
    )

    told = subprocess.run(
        [sys.executable, "-c", program], cwd=CLIENT, capture_output=True, text=True, check=True
    )

    assert told.stdout.splitlines()[1:] == ["[]"]


def test_a_zipapp_unpacks_itself_once(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = tmp_path / "p.pyz"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("pilotage_client/x.py", "")

    first, second = zipapp_main._unpacked(archive), zipapp_main._unpacked(archive)

    assert first == second
    assert (first / "pilotage_client" / "x.py").is_file()
    assert list(first.parent.iterdir()) == [first]


def test_tables_have_colours_on_terminals_only(capsys: Any, monkeypatch: Any) -> None:
    rows = [{"name": "x", "state": "failed"}]
    columns = [("NAME", lambda row: row["name"]), ("STATE", lambda row: row["state"])]
    options = Namespace(constraint="", limit=0, json=False, autoformat=None, autoformat_head=None)
    print_rows(rows, columns, options)
    plain = capsys.readouterr().out
    monkeypatch.setattr("pilotage_client.cli.printing.is_terminal", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")

    print_rows(rows, columns, options)

    assert plain == "NAME  STATE\nx     failed\n"
    coloured = capsys.readouterr().out
    assert coloured != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_reasons_are_cut_to_the_width_of_a_terminal(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("pilotage_client.cli.printing.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    options = Namespace(constraint="", limit=0, json=False, autoformat=None, autoformat_head=None)
    columns = [("ID", lambda row: row["id"]), ("WHY", lambda row: row["why"])]

    print_rows([{"id": "d7", "why": "x" * 300}, {"id": "d" * 60, "why": "short"}], columns, options)
    cut = capsys.readouterr().out.splitlines()
    print_rows([{"id": "d7", "why": "x" * 300}], columns, options)

    # Where little would be left of the reason, the terminal folds the line.
    assert len(cut[1]) > 300
    assert [len(line) for line in capsys.readouterr().out.splitlines()][1] == 40


def test_the_client_is_written_for_python_3_9() -> None:
    """Its syntax, and what of the library is newer; types are looked at by mypy."""
    newer = {"slots", "kw_only", "strict"}
    for path in CLIENT.rglob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        given = {
            keyword.arg
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if node.func.id in ("dataclass", "zip", "field")
            for keyword in node.keywords
        }
        assert newer.isdisjoint(given), path
        assert not any(isinstance(node, ast.Match) for node in ast.walk(tree)), path


@pytest.mark.parametrize(
    ("state", "done", "is_lacking"),
    [("completed", 7, True), ("completed", 8, False), ("active", 7, False)],
)
def test_a_completed_cluster_tells_that_not_all_jobs_are_done(
    state: str, done: int, is_lacking: bool
) -> None:
    row = {"kind": "cluster", "state": state, "counts": {"done": done, "total": 8}}

    assert bool(lack_of(row)) is is_lacking
