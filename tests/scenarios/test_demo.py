from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from portal.cli.demo import DAG_FILE, ENDS, EXAMPLE
from portal.cli.state_directory import BASE, StateDirectory
from portal.cli.up import take_lock
from tests.furnished import copy_static_files, copy_tables
from tests.scenarios.running_demo import RunningDemo, running_demo, wait_for
from tests.scenarios.supervised import kill_program
from tests.scenarios.tutorial import follow_jobs_without_a_dag

pytestmark = [pytest.mark.scenario, pytest.mark.slow]

PROGRAMS = ("web", "worker", "beat", "redis", "postgres")
#: What each of the twelve runs simulates, and for how long it is at it nevertheless.
EVENTS, RUN_S = 20_000, 6


@pytest.fixture
def var():
    """A folder with a path short enough for a socket, which supervisorctl needs."""
    with tempfile.TemporaryDirectory(prefix="pilotage-demo-") as name:
        yield Path(name)


def _light_example(folder: Path) -> Path:
    """A copy of the example whose runs mostly wait: they last, and leave the processors alone.

    The whole one is for `make demo ONCE=1`.
    """
    shutil.copytree(EXAMPLE, folder)
    dag, run = folder / DAG_FILE, folder / "run.py"
    text, runs = re.subn(r'events="\d+"', f'events="{EVENTS}"', dag.read_text())
    dag.write_text(text)
    begin = "    cpu_start_s = time.process_time()\n"
    before, found, after = run.read_text().partition(begin)
    run.write_text(f"{before}    time.sleep({RUN_S})\n{found}{after}")
    assert (runs, found) == (12, begin)
    return folder


def _kill_a_pilot(demo: RunningDemo) -> None:
    """Kill a pilot with everything in its session, as when its node loses power."""
    leader = wait_for("a pilot runs", demo.pilots)[0]
    os.killpg(leader, signal.SIGKILL)


def _goes_on(demo: RunningDemo, done_before: int) -> bool:
    return demo.nodes_done() > done_before or demo.dag().get("state") == "completed"


def _jobs_with_done_attempts(demo: RunningDemo) -> list[int]:
    """For each node, how many attempts of its job ended as done."""
    client = demo.client()
    nodes = []
    page = client.get(f"dags/{demo.dag()['id']}/nodes/?page_size=100")
    nodes += page["results"]
    attempts = (client.get(f"jobs/{node['job']}/")["attempts"] for node in nodes)
    return [sum(attempt["outcome"] == "done" for attempt in each) for each in attempts]


def test_the_demo_survives_every_death_does_what_the_tutorial_says_and_leaves_nothing(
    var: Path, tmp_path: Path
) -> None:
    quick = {
        "PILOTAGE_PILOT_STALLED_AFTER_S": "8",
        "PILOTAGE_AGENT_HEARTBEAT_S": "2",
        "PILOTAGE_RESCHEDULE_PAUSES_S": "1",
    }
    # To make all tables and files anew is for `make demo ONCE=1`, which `.ci/run` runs as well.
    copy_tables(var)
    copy_static_files(var)
    example = _light_example(tmp_path / "example")
    with running_demo(var, "--example", str(example), **quick) as demo:
        wait_for("the first nodes are done", lambda: demo.nodes_done() >= 2, timeout_s=360)

        _kill_a_pilot(demo)
        for program in PROGRAMS:
            done = wait_for("the portal tells", demo.nodes_done)
            kill_program(demo.place, program)
            wait_for(f"nodes go on after {program}", lambda n=done: _goes_on(demo, n))
        wait_for("the end", lambda: demo.dag().get("state") in ENDS, timeout_s=600)

        assert demo.dag()["state"] == "completed"
        assert demo.dag()["nodes"]["done"] == demo.dag()["nodes"]["total"] == 50
        assert _jobs_with_done_attempts(demo) == [1] * 50
        summary = demo.client().get(f"dags/{demo.dag()['id']}/files/summary.json")
        assert summary["jobs"] == len(summary["parts"]) == 12

        said = demo.said()
        for step in (
            "broker and cache: Valkey",
            "the web server answers",
            "the workers answer",
            "a pilot works at T2-",
        ):
            assert step in said
        wait_for("the demo says so", lambda: "Ctrl-C stops it" in demo.said())
        folder = tmp_path / "jobs"
        folder.mkdir()
        follow_jobs_without_a_dag(demo.client(), folder)
        assert demo.interrupt() == 0
        assert demo.processes() == []


def test_a_second_portal_on_the_same_folder_is_refused_with_the_address_of_the_first(var):
    place = StateDirectory(var)
    lock = take_lock(place)
    (place.run / "public.url").write_text("http://127.0.0.1:8123\n")

    second = subprocess.run(
        [sys.executable, BASE / "manage.py", "up"],
        env=os.environ | {"PILOTAGE_VAR": str(var)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert second.returncode == 1
    assert "http://127.0.0.1:8123" in second.stderr
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)
