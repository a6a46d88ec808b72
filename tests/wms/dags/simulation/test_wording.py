"""Wording of the text report of a dry run; other tests assert its values."""

from __future__ import annotations

from pathlib import Path

import pytest

from wms.dags.simulation.dry_run.dry_runs import dry_run, read_dry_run_settings
from wms.dags.simulation.dry_run.local_folder import read_local_folder
from wms.dags.simulation.dry_run.text_report import text_report

pytestmark = pytest.mark.django_db

REPORT = """\
my.dag: failed, exit code 1: 1 node failed, 1 node could not run; first A: the payload ended with \
exit code 1

node  state   jobs  scripts  retries  begins   ends
A     error   1                       0:00:00  0:01:00
B     futile

nodes: 1 error, 1 futile
It would take 0:01:00 and 0:01:00 of jobs' time.
jobs: 1, at most 1 at once

critical path:
  A: 0:01:00

never ran: 1
  B (futile): A failed

It would leave my.dag.rescue001, with 0 nodes done.
"""


def test_the_report_of_a_failed_run(tmp_path: Path) -> None:
    dag = "JOB A step.sub\nJOB B step.sub\nPARENT A CHILD B\n"
    files = {"my.dag": dag, "step.sub": "executable = step.sh\nqueue\n", "step.sh": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = read_dry_run_settings({"A": [1]})

    result = dry_run(read_local_folder(tmp_path, ["my.dag"]), ["my.dag"], settings)

    assert text_report(result, "my.dag") == REPORT
