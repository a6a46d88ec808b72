from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_a_small_sweep_accounts_for_each_row_though_programs_are_killed():
    command = [sys.executable, "-m", "benchmarks.sweep", "--quick", "--json"]

    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    assert run.returncode == 0, run.stderr[-2000:]
    sweep = json.loads(run.stdout)["sweep"]
    ends = sum(sweep[name] for name in ("done", "failed", "killed", "never_made"))
    assert ends == sweep["jobs"]
    assert sweep["never_made"] > 0
    assert sum(sweep["kills"].values()) > 0
