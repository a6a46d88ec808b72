"""Runner of node checks: what becomes of a check that hangs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wms.pilots.agent.checks.publication import NOTHING_PUBLISHED
from wms.pilots.agent.checks.runner import Check, CheckRunner, NodeCheckResult
from wms.pilots.agent.control import Control

pytestmark = pytest.mark.process


def run_hanging(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> NodeCheckResult:
    """Result of a built-in check that is not over in time."""
    program = directory / "agent.py"
    program.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(sys, "argv", [str(program)])
    check = Check(name, True, "", time_limit_s=0.1, period_s=None, settings={})
    runner = CheckRunner(
        [check], files=directory, work_dir=directory, control=Control(), facts=lambda: {}
    )
    [result] = runner.run()
    return result


@pytest.mark.parametrize("name", ["apptainer", "cvmfs", "gpu"])
def test_a_node_on_which_detection_hangs_is_fit_and_the_check_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    result = run_hanging(name, tmp_path, monkeypatch)

    assert (result.is_ok, result.kind) == (True, "")
    assert result.published == NOTHING_PUBLISHED
    assert "0.1 s" in result.metrics["timeout"]


def test_a_node_on_which_another_check_hangs_is_unfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_hanging("disk", tmp_path, monkeypatch)

    assert (result.is_ok, result.kind) == (False, "timeout")
