"""Program that a worker starts for a trial: checks or tries the DAG files of a folder.

    python -m portal.cli.trial_program FOLDER

Reads `request.json` and `files/` in the folder, and writes `progress.json` and `report.json`. It
knows no server of the installation: a check needs none, a dry run has a database of its own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from portal.cli.state_directory import StateDirectory
from portal.cli.without_servers import NOWHERE
from portal.embedded.private_database import private_database, surroundings

if TYPE_CHECKING:
    from portal.cli.dag_reports import ToolReport

_TELL_EVERY_S = 1.0


def main(folder: Path) -> None:
    """Write the report of the trial whose request is in the folder."""
    request = json.loads((folder / "request.json").read_bytes())
    memory_bytes = int(request["memory_mb"]) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    # Either way of ending leaves the block below in order, which stops the server.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if request["kind"] == "dry_run":
        kept = StateDirectory.from_environment().var / "simulation"
        with private_database(kept, within=folder) as (url, of_database):
            os.environ.update(surroundings(url, of_database))
            report = _dry_run(folder, request)
    else:
        os.environ.update(NOWHERE)
        report = _check(folder, request)
    told = {"exit_code": report.exit_code, "report": report.report, "text": report.text}
    _write(folder / "report.json", told)


def _check(folder: Path, request: dict[str, Any]) -> ToolReport:
    django.setup()
    from portal.cli.dag_reports import check_report
    from portal.cli.directory_files import DirectoryFiles
    from wms.dags.language.origin import Origin

    return check_report(
        DirectoryFiles(folder / "files"),
        request["dag_files"],
        Origin(request["directory"], request["root"], request["uses_dag_dir"]),
        allows_missing=request["allows_missing"],
        # One that was asked for before an upgrade says nothing of it.
        is_for_dagman=request.get("is_for_dagman", False),
    )


def _dry_run(folder: Path, request: dict[str, Any]) -> ToolReport:
    django.setup()
    from django.db import connections

    from portal.cli.dag_reports import dry_run_report
    from wms.dags.language.origin import Origin
    from wms.dags.simulation.dry_run.dry_runs import read_dry_run_settings

    try:
        return dry_run_report(
            folder / "files",
            request["dag_files"],
            read_dry_run_settings(request["behaviour"]),
            Origin(request["directory"], request["root"], request["uses_dag_dir"]),
            is_of_this_host=False,
            tell=_teller(folder / "progress.json"),
        )
    finally:
        connections.close_all()


def _teller(path: Path) -> Callable[[int, int], None]:
    told_at_s = 0.0

    def tell(nodes: int, ended: int) -> None:
        nonlocal told_at_s
        if (now_s := time.monotonic()) - told_at_s >= _TELL_EVERY_S or ended == nodes:
            told_at_s = now_s
            _write(path, {"nodes": nodes, "ended": ended})

    return tell


def _write(path: Path, values: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(values), encoding="utf-8")
    fresh.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
