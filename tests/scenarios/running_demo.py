"""Running `manage.py demo` in a folder of its own, watched and disturbed from outside.

`wait_for` polls a condition until it is true.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from portal.cli.client import Client, Unreachable
from portal.cli.state_directory import BASE, StateDirectory
from portal.embedded.ports import kept_ports
from portal.embedded.private import make_private_folder

#: What tests.servers sets for the tests' own servers; a demo starts its own.
FOREIGN = (
    "DATABASE_URL",
    "REDIS_URL",
    "PILOTAGE_VAR",
    "PILOTAGE_SECRET_KEY",
    "PILOTAGE_PUBLIC_URL",
)
POLL_S = 0.5


def wait_for(what: str, condition: Callable[[], Any], *, timeout_s: float = 60) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(POLL_S)
    raise AssertionError(f"not within {timeout_s} s: {what}")


class RunningDemo:
    """The demo's process, its API, and the programs that it supervises."""

    def __init__(self, var: Path, process: subprocess.Popen[str]) -> None:
        self.place = StateDirectory(var)
        self.process = process

    def said(self) -> str:
        return (self.place.var / "demo.out").read_text(encoding="utf-8")

    def client(self) -> Client:
        token = (self.place.run / "operator.token").read_text(encoding="utf-8").strip()
        url = (self.place.run / "public.url").read_text(encoding="utf-8").strip()
        return Client(url, token)

    def dag(self) -> dict[str, Any]:
        """The latest DAG; empty while the web server is away."""
        if self.process.poll() is not None:
            raise AssertionError(f"the demo ended:\n{self.said()}")
        try:
            return next(iter(self.client().get("dags/")["results"]), {})
        except (Unreachable, FileNotFoundError):
            return {}

    def nodes_done(self) -> int:
        return self.dag().get("nodes", {}).get("done", 0)

    def pilots(self) -> list[int]:
        """The session leaders of the pilots that live now."""
        found = [int(f.read_text().split()[0]) for f in self.place.var.glob("pilots/**/pid")]
        return [pid for pid in found if Path(f"/proc/{pid}").exists()]

    def interrupt(self) -> int:
        """Press Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=120)

    def processes(self) -> list[str]:
        """The command lines of all processes that have to do with the demo's folder."""
        needle = os.fsencode(self.place.var)
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                words = _read(entry / "cmdline")
                if needle in words or needle in _read(entry / "environ"):
                    found.append(words.replace(b"\0", b" ").decode(errors="replace"))
        return found


def keep_a_port(var: Path) -> None:
    """Choose a port of its own for a portal that will be disturbed.

    The usual one is taken by any portal that starts while the web server of this one is away.
    """
    place = StateDirectory(var)
    make_private_folder(place.var)
    make_private_folder(place.run)
    kept_ports(place.run / "ports.json", ("web", "postgres"), {})


@contextmanager
def running_demo(var: Path, *arguments: str, **settings: str) -> Iterator[RunningDemo]:
    """A demo on the folder `var`; it is ended with the block if it has not ended before."""
    environment = {name: v for name, v in os.environ.items() if name not in FOREIGN}
    keep_a_port(var)
    with (var / "demo.out").open("w") as out:
        process = subprocess.Popen(
            [sys.executable, BASE / "manage.py", "demo", *arguments],
            stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env=environment | {"PILOTAGE_VAR": str(var)} | settings,
        )  # fmt: skip
    demo = RunningDemo(var, process)
    try:
        yield demo
    finally:
        if process.poll() is None:
            demo.interrupt()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
