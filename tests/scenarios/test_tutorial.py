"""The tutorial's commands about jobs without a DAG do what it says, by the shell and curl alone."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from portal.cli.state_directory import BASE
from tests.scenarios.running_demo import running_demo, wait_for
from tests.scenarios.tutorial import commands_below

pytestmark = [pytest.mark.scenario, pytest.mark.slow]

#: The tutorial's thousand jobs take minutes; what is done with them is the same for fewer.
JOBS = 60


def test_a_job_a_sweep_and_a_dag_are_submitted_and_their_outputs_fetched(tmp_path: Path):
    script = commands_below(BASE / "docs" / "tutorial.md", "## Jobs without a DAG")
    assert "seq 1 1000" in script
    script = script.replace("seq 1 1000", f"seq 1 {JOBS}")
    with (
        tempfile.TemporaryDirectory(prefix="pilotage-demo-") as name,
        running_demo(Path(name)) as demo,
    ):
        wait_for("the demo is ready", lambda: demo.dag(), timeout_s=180)
        client = demo.client()
        known = os.environ | {"TOKEN": client.token, "PORTAL": client.url}

        done = subprocess.run(
            ["bash", "-eu", "-c", script],
            cwd=tmp_path,
            env=known,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

        assert done.returncode == 0, done.stdout + done.stderr
        said = {path: (tmp_path / path).read_text() for path in ("hello.txt", "where.txt")}
        assert said["hello.txt"].startswith("hello from job 0 of cluster")
        lines = said["where.txt"].splitlines()
        sites = {line.split()[0]: line.split()[-1] for line in lines}
        assert len(set(sites.values())) >= 2
        # What each job was given is of the site whose pilot ran it.
        dag = json.loads((tmp_path / "spread.json").read_text())["id"]
        assert client.get(f"dags/{dag}/")["site"] is None
        for job in client.get(f"jobs/?dag={dag}")["results"]:
            told = client.get(f"jobs/{job['id']}/")
            node, name = told["arguments"]
            ran_at = {each["site_name"] for each in told["attempts"] if not each["reason"]}
            assert ran_at == {name} == {sites[node]}
        squares = [path.read_text() for path in tmp_path.glob("*/square.txt")]
        assert sorted(squares) == sorted(f"{n} {n * n}\n" for n in range(1, JOBS + 1))
