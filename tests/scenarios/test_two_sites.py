"""One DAG whose jobs run at two sites, each with what its own site gives to it."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.cli.client import Part
from portal.cli.demo import ENDS
from tests.scenarios.running_demo import wait_for
from tests.scenarios.running_portal import RunningPortal, running_portal

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.process]

NODES = 12
LIMIT_S = 180.0
QUICK = {"PILOTAGE_AGENT_HEARTBEAT_S": "2", "PILOTAGE_AGENT_IDLE_LIMIT_S": "6"}
SUBMIT_FILE = """\
executable = payload.sh
arguments = $(number) $$(Name) $ENV(PLACE)
transfer_output_files = out.$(number)
queue
"""
PAYLOAD = """\
#!/bin/sh
sleep 2
echo "$2 $3" >"out.$1"
"""


@pytest.fixture
def var() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="pilotage-two-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _site(name: str, var: Path) -> dict[str, Any]:
    """A site that has two slots on this host."""
    queue = {
        "name": "host", "element": "host", "cores": 1, "memory_mb": 100, "max_pilots": 2,
        "max_queued_pilots": 2, "wall_time_s": 3600, "attenuation": 1.0,
        "settings": {"directory": str(var / name), "slots": 2},
    }  # fmt: skip
    return {"site": {"name": name, "environment": f"PLACE=at-{name}"}, "queues": [queue]}


def _submit(portal: RunningPortal, folder: Path) -> int:
    lines = [f'JOB n{n} step.sub\nVARS n{n} number="{n}"' for n in range(NODES)]
    texts = {
        "two.dag": "\n".join(lines) + "\n",
        "step.sub": SUBMIT_FILE,
        "payload.sh": PAYLOAD,
        "whole.sub": "binding = job\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    kinds = {"two.dag": "dag", "whole.sub": "description"}
    parts = [Part(kinds.get(name, "file"), folder / name) for name in texts]
    return int(portal.client.post_files("dags/", parts, key=secrets.token_hex(16))["id"])


def test_the_jobs_of_one_dag_run_at_two_sites(var: Path) -> None:
    north, south = _site("North", var), _site("South", var)
    with running_portal(var, north["site"], north["queues"], south, **QUICK) as portal:
        dag_id = _submit(portal, var)
        path = f"dags/{dag_id}/"

        wait_for("the end", lambda: portal.get(path).get("state") in ENDS, timeout_s=LIMIT_S)

        ended = portal.get(path)
        assert (ended["state"], ended["nodes"]["done"], ended["site"]) == ("completed", NODES, None)
        sites = set()
        for job in portal.all(f"jobs/?dag={dag_id}&page_size=100"):
            told = portal.get(f"jobs/{job['id']}/")
            number, name, place = told["arguments"]
            assert {each["site_name"] for each in told["attempts"] if not each["reason"]} == {name}
            assert portal.text(f"dags/{dag_id}/files/out.{number}") == f"{name} {place}\n"
            assert place == f"at-{name}"
            sites.add(name)
        assert sites == {"North", "South"}
