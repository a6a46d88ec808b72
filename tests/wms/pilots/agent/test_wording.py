"""Sentences that users read about their jobs on a node; other tests look at fields and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.wms.pilots.agent.payload.test_watchdog import ALL
from wms.pilots.agent.files import sandbox
from wms.pilots.agent.resources.usage import Usage
from wms.pilots.agent.resources.watchdog import Watchdog


@pytest.mark.parametrize(
    ("used", "reason"),
    [
        ({"wall_s": 100.0}, "wall-clock limit of 100 s exceeded: it ran for 100 s"),
        ({"cpu_s": 50.5}, "CPU time over its limit: 50.5 s of 50 s"),
        ({"memory_mb": 200.4}, "memory over its limit: 200 MB of 200 MB"),
        ({"disk_mb": 1234.0}, "disk space over its limit: 1234 MB of 300 MB"),
        ({"output_mb": 10.25}, "stdout and stderr over its limit: 10.2 MB of 10 MB"),
        ({"processes": 21}, "processes over its limit: 21 of 20"),
        (
            {"disk_free_mb": 20.0, "disk_mb": 90.0},
            "the node's disk is nearly full: 20 MB are free, this job uses 90 MB",
        ),
        ({"files": 1_000_001}, "files over its limit: 1000001 of 100000"),
        (
            {"is_too_deep": True},
            "folders over their limit: they are nested deeper than a path can name",
        ),
        (
            {"wall_s": 30.0},
            "no progress: 0.0 s of CPU time in the last 30 s are 0.0%, the limit is 10.0%",
        ),
    ],
)
def test_reasons_of_the_watchdog(used: dict[str, Any], reason: str) -> None:
    assert Watchdog(ALL).why_stop(Usage(**used)) == reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = 1", "no known program format; a script needs a first line #!"),
        (
            b"#!/bin/sh\r\n",
            "its lines end as in Windows, so that its first line names no interpreter",
        ),
        (
            b"#!/no/python\n",
            "its first line names an interpreter that does not exist here: #!/no/python",
        ),
    ],
)
def test_reasons_why_a_file_cannot_be_executed(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "run").write_bytes(content)

    told = sandbox.why_not_executable(str(tmp_path / "run"))

    assert told == f"cannot start run: {reason}"


def test_the_gap_in_a_shortened_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "LOG_LIMIT_BYTES", 10)
    log = tmp_path / "stdout"
    log.write_text("begin" + "x" * 1000 + "final")

    text = sandbox.bounded_log(log).read_text()

    assert text == "begin\n[... pilot: 1000 bytes left out here ...]\nfinal"
