"""Kill of a program of a running portal by SIGKILL, until its supervisor has started it again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from portal.cli.state_directory import StateDirectory
from tests.scenarios.running_demo import wait_for


def kill_program(place: StateDirectory, program: str) -> None:
    """End a program of the portal by SIGKILL, and return when it runs again."""
    pid = wait_for(f"{program} runs", lambda: _pid_of(place, program))
    os.kill(pid, signal.SIGKILL)
    wait_for(f"{program} runs again", lambda: _pid_of(place, program) not in {0, pid})


def _pid_of(place: StateDirectory, program: str) -> int:
    """The program's process id; 0 while it is not running."""
    configuration = place.run / "supervisord.conf"
    command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", configuration]
    done = subprocess.run([*command, "status"], capture_output=True, text=True)
    # Names of programs in groups are `group:program`.
    found = re.search(rf"^(?:\w+:)?{program} +RUNNING +pid ([0-9]+)", done.stdout, re.MULTILINE)
    return int(found[1]) if found else 0
