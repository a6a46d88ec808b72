from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks.base import TEMPLATE_VARIABLE
from tests.migrated import ensure_migrated
from tests.servers import OWN_VARIABLE

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_a_small_sweep_accounts_for_each_row_though_programs_are_killed():
    command = [sys.executable, "-m", "benchmarks.sweep", "--quick", "--json"]
    # To migrate would take as long as the sweep.
    begin = {TEMPLATE_VARIABLE: ensure_migrated()} if OWN_VARIABLE in os.environ else {}

    run = subprocess.run(
        command, env=os.environ | begin, capture_output=True, text=True, timeout=300, check=False
    )

    assert run.returncode == 0, run.stderr[-2000:]
    sweep = json.loads(run.stdout)["sweep"]
    ends = sum(sweep[name] for name in ("done", "failed", "killed", "never_made"))
    assert ends == sweep["jobs"]
    assert sweep["never_made"] > 0
    assert sum(sweep["kills"].values()) > 0
