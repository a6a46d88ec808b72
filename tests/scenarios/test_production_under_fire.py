"""A production on three batch systems at once, while everything that can break is broken."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from portal.cli.client import Part
from portal.cli.demo import ENDS
from tests.batch_systems import slurm
from tests.batch_systems.slurm import Slurm
from tests.batch_systems.sshd import Sshd
from tests.scenarios.running_demo import wait_for
from tests.scenarios.running_portal import RunningPortal, processes_with, running_portal

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.slow,
    # It takes three minutes of a machine that has nothing else to do.
    pytest.mark.skipif(
        "PILOTAGE_BATCH_SYSTEMS" in os.environ, reason="only by `make test-elements`"
    ),
]

NODES = 500
LIMIT_S = 480.0
#: How long Slurm's controller is away.
OUTAGE_S = 60.0
QUICK = {
    "PILOTAGE_AGENT_HEARTBEAT_S": "2",
    "PILOTAGE_PILOT_STALLED_AFTER_S": "10",
    "PILOTAGE_AGENT_IDLE_LIMIT_S": "20",
    "PILOTAGE_RESCHEDULE_PAUSES_S": "1,2,5",
}
PAYLOAD = """\
#!/bin/sh
sleep 2.$2
echo "node $1" >"out.$1"
"""
SUBMIT_FILE = """\
executable = payload.sh
arguments = $(number) $(tenths)
transfer_output_files = out.$(number)
queue
"""


@pytest.fixture
def var() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="pilotage-fire-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _queues(var: Path, slurm: Slurm, sshd: Sshd, software: Path) -> list[Any]:
    common = {
        "cores": 1, "memory_mb": 100, "max_pilots": 6, "max_queued_pilots": 6, "wall_time_s": 3600,
        "hold_after_failure_s": 0, "attenuation": 1.0,
    }  # fmt: skip
    check = {"name": "software", "settings": {"directories": [str(software)]}}
    on_slurm = {"log_directory": str(var / "slurm"), "slurm_conf": str(slurm.configuration)}
    over_ssh = {"directory": str(var / "ssh"), "slots": 6, "ssh": sshd.settings()}
    here = {"directory": str(var / "host"), "slots": 6}
    return [
        {"name": "slurm", "element": "slurm", "settings": on_slurm, **common},
        {"name": "ssh", "element": "host", "settings": over_ssh, "checks": [check], **common},
        {"name": "host", "element": "host", "settings": here, **common},
    ]


def _submit(portal: RunningPortal, folder: Path) -> int:
    """Send a wide DAG: the first node before all others, and one after them."""
    last = NODES - 1
    lines = [f"JOB n{n} step.sub" for n in range(NODES)]
    lines += [f'VARS n{n} number="{n}" tenths="{n % 9}"' for n in range(NODES)]
    middle = " ".join(f"n{n}" for n in range(1, last))
    lines += [f"PARENT n0 CHILD {middle}", f"PARENT {middle} CHILD n{last}"]
    for name, text in (
        ("fire.dag", "\n".join(lines) + "\n"),
        ("step.sub", SUBMIT_FILE),
        ("payload.sh", PAYLOAD),
    ):
        (folder / name).write_text(text)
    parts = [Part("dag" if n.endswith(".dag") else "file", folder / n) for n in
             ("fire.dag", "step.sub", "payload.sh")]  # fmt: skip
    return int(portal.client.post_files("dags/", parts, key=secrets.token_hex(16))["id"])


class Killer(threading.Thread):
    """Kills half of the pilots that it sees by SIGKILL, each at a random time of its life."""

    def __init__(self, pilots: Callable[[], list[int]]) -> None:
        super().__init__(daemon=True)
        self._pilots = pilots
        self._draw = random.Random(6)
        self._seen: set[int] = set()
        self._over = threading.Event()
        self.killed: set[int] = set()

    def run(self) -> None:
        kill_at: dict[int, float] = {}
        while not self._over.wait(0.5):
            now = time.monotonic()
            for pid in set(self._pilots()) - self._seen:
                self._seen.add(pid)
                if self._draw.random() < 0.5:
                    kill_at[pid] = now + self._draw.uniform(1.0, 25.0)
            for pid in [each for each, at in kill_at.items() if at <= now]:
                del kill_at[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed.add(pid)

    def stop(self) -> None:
        self._over.set()
        self.join()


def _done(portal: RunningPortal, path: str) -> int:
    return int(portal.get(path).get("nodes", {}).get("done", 0))


def _unfit_pilots(portal: RunningPortal) -> list[dict[str, Any]]:
    """The pilots whose node did not pass its checks."""
    found = portal.get("pilots/?state=failed&page_size=100").get("results", [])
    return [pilot for pilot in found if "software" in pilot["state_reason"]]


def _check_nodes(portal: RunningPortal, dag_id: int) -> Counter[str]:
    """Every node ended well once, and its output is there; the outcomes of all attempts."""
    outcomes: Counter[str] = Counter()
    for node in portal.all(f"dags/{dag_id}/nodes/?page_size=100"):
        attempts = portal.client.get(f"jobs/{node['job']}/")["attempts"]
        mine = Counter(attempt["outcome"] for attempt in attempts)
        assert mine["done"] == 1, (node["name"], attempts)
        # Whoever looks at the job reads what became of the others.
        assert all(attempt["reason"] for attempt in attempts if attempt["outcome"] != "done")
        outcomes += mine
    return outcomes


def test_a_production_on_slurm_ssh_and_host_completes_whatever_breaks(
    var: Path, own_slurm: Slurm, sshd: Sshd
) -> None:
    software = var / "software"
    software.mkdir()
    (software / "release").touch()
    queues = _queues(var, own_slurm, sshd, software)
    with running_portal(var, {"name": "Everywhere"}, queues, **QUICK) as portal:
        dag_id = _submit(portal, var)
        path = f"dags/{dag_id}/"
        killer = Killer(lambda: processes_with([str(var), str(own_slurm.folder)], word="agent.pyz"))
        killer.start()
        wait_for("the first nodes are done", lambda: _done(portal, path) > 20, timeout_s=120)

        # The node behind ssh loses its software; Slurm its controller; the portal its web server.
        (software / "release").unlink()
        own_slurm.stop_controller()
        restart = threading.Timer(OUTAGE_S, lambda: slurm.start(own_slurm.folder))
        restart.start()
        done = _done(portal, path)
        portal.kill("web")
        wait_for("nodes go on", lambda: _done(portal, path) > done, timeout_s=120)
        wait_for("a node is found unfit", lambda: _unfit_pilots(portal), timeout_s=120)
        (software / "release").touch()
        wait_for("the end", lambda: portal.get(path).get("state") in ENDS, timeout_s=LIMIT_S)
        restart.join()
        killer.stop()

        ended = portal.get(path)
        assert (ended["state"], ended["nodes"]["done"]) == ("completed", NODES), ended
        outcomes = _check_nodes(portal, dag_id)
        assert outcomes["done"] == NODES
        for number in range(0, NODES, 7):
            assert portal.text(f"{path}files/out.{number}") == f"node {number}\n"
        # Killed pilots are told apart from those that ended by themselves, with the reason.
        pilots = portal.all("pilots/?page_size=100")
        lost = [pilot for pilot in pilots if pilot["state"] == "failed"]
        assert len(lost) >= len(killer.killed) > 0
        assert all(pilot["state_reason"] for pilot in lost)
        assert {pilot["queue"].split("/")[-1] for pilot in pilots} == {"slurm", "ssh", "host"}
