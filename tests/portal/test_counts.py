"""Counts of processes that share a folder are added up, and a full disk stops none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

pytestmark = pytest.mark.process

#: Counts in a process, and in one that it becomes by a fork, as servers and workers do.
_COUNT_TWICE = """
import os
from portal.metrics.counts import count_claim, count_heartbeat
count_claim(has_job=True)
child = os.fork()
if not child:
    count_claim(has_job=True)
    count_heartbeat(has_commands=False)
    os._exit(0)
os.waitpid(child, 0)
"""
#: No file may grow: what a full disk does to new files.
_FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"


def _run(program: str, folder: Path) -> int:
    environment = os.environ | {
        "PILOTAGE_METRICS_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "portal.settings"
    }  # fmt: skip
    return subprocess.run([sys.executable, "-c", program], env=environment).returncode


def _sums(folder: Path) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_processes_that_share_a_folder_are_added_up(tmp_path: Path) -> None:
    assert _run(_COUNT_TWICE, tmp_path / "metrics") == 0

    sums = _sums(tmp_path / "metrics")

    assert sums["pilotage_claims_total", "job"] == 2
    assert sums["pilotage_heartbeats_total", "none"] == 1
    assert (tmp_path / "metrics").stat().st_mode & 0o077 == 0


def test_a_process_goes_on_where_its_counts_find_no_room(tmp_path: Path) -> None:
    assert _run(_FULL + _COUNT_TWICE, tmp_path) == 0

    assert _sums(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
