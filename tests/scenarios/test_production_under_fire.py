"""A production on three batch systems at once, while everything that can break is broken."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from portal.cli.client import Part
from portal.cli.demo import ENDS
from tests.batch_systems import slurm
from tests.batch_systems.slurm import Slurm
from tests.batch_systems.sshd import Sshd
from tests.scenarios.killer import Killer
from tests.scenarios.pages import Pages
from tests.scenarios.running_demo import wait_for
from tests.scenarios.running_portal import RunningPortal, running_portal

# Three minutes of a machine that has nothing else to do, or nothing that may not wait.
pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.apart]

NODES = 300
LIMIT_S = 480.0
#: How long Slurm's controller is away.
OUTAGE_S = 60.0
QUICK = {
    "PILOTAGE_AGENT_HEARTBEAT_S": "2",
    "PILOTAGE_PILOT_STALLED_AFTER_S": "10",
    "PILOTAGE_AGENT_IDLE_LIMIT_S": "6",
    "PILOTAGE_RESCHEDULE_PAUSES_S": "1,2,5",
}
PAYLOAD = """\
#!/bin/sh
sleep 4.$2
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


def _living(portal: RunningPortal) -> list[dict[str, Any]]:
    states = ("submitted", "queued", "running", "stalled")
    return [p for state in states for p in portal.get(f"pilots/?state={state}")["results"]]


def _done(portal: RunningPortal, path: str) -> int:
    return int(portal.get(path).get("nodes", {}).get("done", 0))


def _unfit_pilots(portal: RunningPortal) -> list[dict[str, Any]]:
    """The pilots whose node did not pass its checks."""
    found = portal.get("pilots/?state=failed&queue=ssh&page_size=100").get("results", [])
    return [pilot for pilot in found if "check software" in pilot["state_reason"]]


def _break_everything(
    portal: RunningPortal, pages: Pages, path: str, own_slurm: Slurm, software: Path
) -> None:
    """Stop Slurm's controller for a minute; meanwhile spoil the node behind ssh and the web."""
    until = time.monotonic() + OUTAGE_S
    own_slurm.stop_controller()
    (software / "release").unlink()
    wait_for(
        "the queue's page tells the outage",
        lambda: (
            "Unable to contact slurm controller" in pages.text("sites/Everywhere/queues/slurm/")
        ),
        timeout_s=LIMIT_S,
    )
    done = _done(portal, path)
    portal.kill("web")
    wait_for("nodes go on", lambda: _done(portal, path) > done, timeout_s=LIMIT_S)
    wait_for("a node is found unfit", lambda: _unfit_pilots(portal), timeout_s=LIMIT_S)
    (software / "release").touch()
    wait_for("the minute is over", lambda: time.monotonic() > until, timeout_s=LIMIT_S)
    slurm.start(own_slurm.folder)


def _check_nodes(portal: RunningPortal, pages: Pages, dag_id: int) -> None:
    """Every node ended well once, and its output is there, made once."""
    jobs = {job["id"]: job for job in portal.all(f"jobs/?dag={dag_id}&page_size=100")}
    nodes = portal.all(f"dags/{dag_id}/nodes/?page_size=100")
    assert {node["job"] for node in nodes} == set(jobs)
    assert {job["state"] for job in jobs.values()} == {"done"}
    assert any(job["attempt_number"] > 1 for job in jobs.values())
    for job in jobs.values():
        if job["attempt_number"] > 1:
            _check_repeated(portal, pages, job["id"])
    for number in range(0, NODES, 7):
        assert portal.text(f"dags/{dag_id}/files/out.{number}") == f"node {number}\n"


def _check_repeated(portal: RunningPortal, pages: Pages, job_id: int) -> None:
    """One attempt of the job counts, and its page tells what became of the others."""
    attempts = portal.client.get(f"jobs/{job_id}/")["attempts"]
    page = pages.text(f"jobs/{job_id}/")
    others = [attempt for attempt in attempts if attempt["outcome"] != "done"]
    assert len(others) == len(attempts) - 1, attempts
    for attempt in others:
        assert attempt["reason"]
        assert attempt["reason"] in page


def _check_pilots(portal: RunningPortal, pages: Pages, killed: Mapping[str, datetime]) -> None:
    """Each pilot's page tells how it ended: those that were killed failed, with the reason."""
    pilots = {pilot["native_id"]: pilot for pilot in portal.all("pilots/?page_size=100")}
    assert {pilot["queue"] for pilot in pilots.values()} == {"slurm", "ssh", "host"}
    assert {pilots[native_id]["queue"] for native_id in killed} == {"slurm", "ssh", "host"}
    for native_id, killed_at in killed.items():
        pilot = pilots[native_id]
        # It may have said good-bye just before.
        if datetime.fromisoformat(pilot["ended_at"]) > killed_at:
            assert pilot["state"] in {"failed", "aborted"}, pilot
            assert re.search("without|no heartbeat", pilot["state_reason"]), pilot
    for page in (pages.text(f"pilots/{number}/") for number in range(1, len(pilots) + 1)):
        pilot = next(each for each in pilots.values() if each["uuid"] in page)
        assert pilot["native_id"] in page
        assert pilot["state_reason"] in page
        assert (pilot["state"] == "done") == ("idle" in pilot["state_reason"]), pilot


def test_a_production_on_slurm_ssh_and_host_completes_whatever_breaks(
    var: Path, own_slurm: Slurm, sshd: Sshd
) -> None:
    software = var / "software"
    software.mkdir()
    (software / "release").touch()
    queues = _queues(var, own_slurm, sshd, software)
    with running_portal(var, {"name": "Everywhere"}, queues, **QUICK) as portal:
        pages = portal.pages()
        dag_id = _submit(portal, var)
        path = f"dags/{dag_id}/"
        wait_for("the first nodes are done", lambda: _done(portal, path) > 20, timeout_s=LIMIT_S)

        killer = Killer([var, own_slurm.folder])
        killer.start()
        _break_everything(portal, pages, path, own_slurm, software)
        wait_for("the end", lambda: portal.get(path).get("state") in ENDS, timeout_s=LIMIT_S)
        killer.stop()
        wait_for("all pilots have ended", lambda: not _living(portal), timeout_s=LIMIT_S)

        ended = portal.get(path)
        assert (ended["state"], ended["nodes"]["done"]) == ("completed", NODES), ended
        assert f"{NODES} of {NODES} done" in pages.text(path)
        _check_nodes(portal, pages, dag_id)
        _check_pilots(portal, pages, killer.killed)
