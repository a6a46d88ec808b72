"""Tables and static files of a first start, made once in a run and copied for portals of tests.

Tables and static files take longer than most of what is tested then. What a portal does that has
neither, `make demo ONCE=1` sees.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from portal.embedded.ports import free_ports
from portal.embedded.postgres import Postgres
from portal.embedded.readiness import wait_for_postgres
from tests.batch_systems.services import FOLDER_VARIABLE, locked
from tests.migrated import fill

_ROOT = Path(__file__).parents[1]
_COLLECT = """
import django
django.setup()
from portal.cli.static_collection import collect_static_files
collect_static_files(print)
"""


def copy_tables(var: Path) -> None:
    """Give the folder of a portal that brings its own server the data of one with all tables."""
    _copy("postgres", var, _make_tables)


def copy_static_files(var: Path) -> None:
    """Give a portal's folder the static files as the portal would collect them."""
    _copy("static", var, _collect)


def _copy(name: str, var: Path, make: Callable[[Path], None]) -> None:
    made = Path(os.environ[FOLDER_VARIABLE], f"furnished-{name}")
    with locked(Path(os.environ[FOLDER_VARIABLE], f"furnished-{name}.lock")):
        if not made.exists():
            fresh = made.with_suffix(".new")
            make(fresh)
            (fresh / name).rename(made)
    shutil.copytree(made, var / name)


def _make_tables(folder: Path) -> None:
    (port,) = free_ports(1)
    # A server that root starts may run as another account, which enters no folder of the run.
    with tempfile.TemporaryDirectory(prefix="pilotage-") as name:
        postgres = Postgres.at(Path(name, "postgres"), port)
        postgres.prepare()
        with Path(name, "log").open("wb") as log:
            server = subprocess.Popen(
                postgres.command(fsync="off"), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            wait_for_postgres(postgres.url, timeout_s=60)
            fill(postgres.url)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)
        shutil.copytree(postgres.folder, folder / "postgres")


def _collect(folder: Path) -> None:
    environment = os.environ | {
        "PILOTAGE_VAR": str(folder),
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    words = [sys.executable, "-c", _COLLECT]
    subprocess.run(words, cwd=_ROOT, env=environment, check=True, capture_output=True)
