"""The tutorial's commands about jobs without a DAG, followed by the shell and curl alone.

`follow_jobs_without_a_dag` fails where they do not do what the tutorial says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from portal.cli.client import Client
from portal.cli.state_directory import BASE

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The tutorial's thousand jobs take minutes; what is done with them is the same for fewer.
JOBS = 40


def follow_jobs_without_a_dag(client: Client, folder: Path) -> None:
    """Submit a job, a sweep and a DAG, and fetch their outputs into the folder."""
    script = _commands_below(BASE / "docs" / "tutorial.md", "## Jobs without a DAG")
    assert "seq 1 1000" in script
    script = script.replace("seq 1 1000", f"seq 1 {JOBS}")
    known = os.environ | {"TOKEN": client.token, "PORTAL": client.url}

    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        cwd=folder,
        env=known,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "hello.txt").read_text().startswith("hello from job 0 of cluster")
    lines = (folder / "where.txt").read_text().splitlines()
    sites = {line.split()[0]: line.split()[-1] for line in lines}
    assert len(set(sites.values())) >= 2
    # What each job was given is of the site whose pilot ran it.
    dag = json.loads((folder / "spread.json").read_text())["id"]
    assert client.get(f"dags/{dag}/")["site"] is None
    for job in client.get(f"jobs/?dag={dag}")["results"]:
        told = client.get(f"jobs/{job['id']}/")
        node, name = told["arguments"]
        ran_at = {each["site_name"] for each in told["attempts"] if not each["reason"]}
        assert ran_at == {name} == {sites[node]}
    squares = [path.read_text() for path in folder.glob("*/square.txt")]
    assert sorted(squares) == sorted(f"{n} {n * n}\n" for n in range(1, JOBS + 1))


def _commands_below(document: Path, heading: str) -> str:
    """The shell blocks from a heading up to the next one of its rank."""
    text = document.read_text(encoding="utf-8")
    rank = heading.partition(" ")[0]
    _, _, rest = text.partition(f"\n{heading}\n")
    section = re.split(rf"^{rank} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return "\n".join(_BLOCK.findall(section))
