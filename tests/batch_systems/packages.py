"""Installation of Debian packages that a test needs, where possible, and paths of programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.batch_systems.services import Unavailable, locked

INSTALL_LIMIT_S = 300
#: Daemons are in folders that the PATH of an ordinary user does not have.
PATH = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"


def ensure_programs(packages: Mapping[str, str]) -> None:
    """Install the packages (name: a program of it) whose program is missing; only root can.

    No service of theirs is started. Raises `Unavailable`.
    """
    if not _missing(packages):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"not installed: {', '.join(_missing(packages))}")
    with locked(Path(tempfile.gettempdir(), "pilotage-test-packages.lock")):
        missing = _missing(packages)
        # Without `update` first: the lists are mostly there, and fetching them takes long.
        if missing and not _apt_get("install", *missing):
            _apt_get("update")
            _apt_get("install", *missing)
    if _missing(packages):
        raise Unavailable(f"apt-get could not install {', '.join(_missing(packages))}")


def program(name: str) -> str:
    """Return the full path of a program that is installed."""
    found = shutil.which(name, path=PATH)
    if found is None:
        raise Unavailable(f"{name} is not installed")
    return found


def _missing(packages: Mapping[str, str]) -> list[str]:
    return [name for name, each in packages.items() if shutil.which(each, path=PATH) is None]


def _apt_get(command: str, *names: str) -> bool:
    # A run level without services keeps the packages' own daemons down.
    environment = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-qq", "-o", "DPkg::Lock::Timeout=120", "--yes", "--no-install-recommends"]
    try:
        done = subprocess.run(
            ["apt-get", *options, command, *names],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=INSTALL_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
