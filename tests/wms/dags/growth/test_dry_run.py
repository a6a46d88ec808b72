"""Dry runs of DAGs that grow: fragments that are there, and those that are not there yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from wms.dags.simulation.dry_run.dry_runs import dry_run, read_dry_run_settings
from wms.dags.simulation.dry_run.local_folder import read_local_folder

DAG = """\
JOB A a.sub
JOB B a.sub
PARENT A CHILD B
EXPAND A more.dag
EXPAND B later.dag
"""
MORE = "JOB X a.sub\nREPEAT X WHILE (Pass < 3) MAX 5\n"


@pytest.mark.django_db
@pytest.mark.slow
def test_a_dry_run_grows_by_what_is_there(tmp_path: Path) -> None:
    for name, text in (
        ("a.dag", DAG), ("more.dag", MORE), ("a.sub", "executable = /bin/true\nqueue\n"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    settings = read_dry_run_settings({"duration": {"X": 7, "X#2": 9}})

    result = dry_run(read_local_folder(tmp_path, ["a.dag"]), ["a.dag"], settings)

    states = {node.name: node.state for node in result.outcome.nodes}
    assert states == dict.fromkeys(["A", "B", "X", "X#2", "X#3"], "done")
    assert [step.name for step in result.critical_path] == ["A", "X", "X#2", "X#3", "B"]
    assert result.duration_us == (60 + 7 + 9 + 7 + 60) * 1_000_000
    assert any("later.dag is not there yet" in each.message for each in result.warnings)
