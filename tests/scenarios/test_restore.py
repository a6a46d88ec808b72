"""A portal is backed up while jobs run, goes on, and is restored: each job is accounted for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from portal.cli.backups.manifest import MANIFEST
from portal.cli.state_directory import BASE
from tests.scenarios.running_demo import FOREIGN, wait_for
from tests.scenarios.running_portal import RunningPortal, running_portal, started

pytestmark = [pytest.mark.scenario, pytest.mark.slow]

_QUICK = {
    "PILOTAGE_AGENT_HEARTBEAT_S": "0.5",
    "PILOTAGE_AGENT_POLL_S": "0.5",
    "PILOTAGE_AGENT_IDLE_LIMIT_S": "20",
    "PILOTAGE_PILOT_STALLED_AFTER_S": "5",
    "PILOTAGE_RESCHEDULE_PAUSES_S": "",
}
_LIMIT_S = 300


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="pilotage-restore-"))
    folder.chmod(0o711)
    (folder / "gate").mkdir()
    (folder / "gate").chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _manage(var: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: v for name, v in os.environ.items() if name not in FOREIGN}
    return subprocess.run(
        [sys.executable, str(BASE / "manage.py"), *words], cwd=BASE, text=True,
        capture_output=True, env=environment | {"PILOTAGE_VAR": str(var)},
    )  # fmt: skip


def _done(*done: subprocess.CompletedProcess[str]) -> str:
    for each in done:
        assert each.returncode == 0, each.stdout + each.stderr
    return done[-1].stdout


def _post(portal: RunningPortal, path: str, **told: Any) -> Any:
    request = urllib.request.Request(
        f"{portal.url}/api/v1/{path}", json.dumps(told).encode(),
        {"Content-Type": "application/json", "Authorization": f"Token {portal.client.token}"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _submit(portal: RunningPortal, shell: str, number: int) -> list[int]:
    told = {"name": "load", "shell": shell, "memory_mb": 50, "cpu_time_s": 60, "queue": number}
    cluster = _post(portal, "jobs/", **told)["id"]
    found = wait_for(
        "its jobs are made",
        lambda: len(rows := portal.all(f"jobs/?cluster={cluster}")) == number and rows,
        timeout_s=_LIMIT_S,
    )
    return sorted(each["id"] for each in found)


def _states(portal: RunningPortal) -> dict[int, str]:
    return {each["id"]: each["state"] for each in portal.all("jobs/")}


def _events(portal: RunningPortal, job: int) -> list[str]:
    return [each["event"] for each in portal.get(f"jobs/{job}/")["events"]]


def _all_done(portal: RunningPortal, ids: list[int]) -> Any:
    states = _states(portal)
    return all(states.get(each) == "done" for each in ids)


def _queue(place: Path) -> Mapping[str, Any]:
    return {
        "name": "local", "element": "host", "max_pilots": 2, "max_queued_pilots": 2,
        "memory_mb": 200, "wall_time_s": 3600,
        "shared_folders": [{"path": str(place / "gate"), "is_writable": True}],
    }  # fmt: skip


def test_each_job_of_a_restored_installation_is_accounted_for(place: Path) -> None:
    old, new, backup = place / "old", place / "new", place / "backup"
    gate = place / "gate" / "open"
    with running_portal(old, {"name": "here"}, [_queue(place)], **_QUICK) as portal:
        token = portal.client.token
        before = _submit(portal, "echo before", 2)
        wait_for("two are done", lambda: _all_done(portal, before), timeout_s=_LIMIT_S)
        under_way = _submit(portal, f"until [ -e {gate} ]; do sleep 0.2; done; echo late", 4)
        wait_for(
            "two run and two wait",
            lambda: sorted(map(_states(portal).get, under_way))
            == ["running", "running", "waiting", "waiting"],
            timeout_s=_LIMIT_S,
        )  # fmt: skip

        _done(_manage(old, "backup", str(backup), "--with-secrets"))

        # What the backup does not know: ends, and further jobs.
        gate.touch()
        after = _submit(portal, "echo after", 1)
        wait_for(
            "all are done", lambda: _all_done(portal, [*under_way, *after]), timeout_s=_LIMIT_S
        )
        # Nothing is restored where something is.
        refused = _manage(old, "restore", str(backup))
        assert refused.returncode == 1
        assert "already runs" in refused.stderr
    refused = _manage(old, "restore", str(backup))
    assert (refused.returncode, (old / "run" / "restoring").exists()) == (1, False)
    _refuse_newer_and_damaged(backup, place)

    # What a restore that was killed has left is no installation: it is begun anew.
    (new / "postgres" / "data").mkdir(parents=True)
    (new / "run" / "restoring").write_text(f"{backup}\n")
    said = _done(_manage(new, "restore", str(backup)))
    assert "Restored" in said
    # The former installation is not in the way of what it writes from now on.
    with started(new, **_QUICK) as (folder, child):
        portal = RunningPortal(folder, child, token)
        account = json.loads(_done(_manage(new, "reconcile", "--json")))
        # Their host is gone: nobody has to wait for them until they are given up.
        for pilot in portal.all("pilots/"):
            if pilot["state"] in ("running", "stalled"):
                _post(portal, f"pilots/{pilot['uuid']}/remove/", reason="its host is gone")
        wait_for("all are done", lambda: _all_done(portal, under_way), timeout_s=_LIMIT_S)
        again = json.loads(_done(_manage(new, "reconcile", "--json")))
        [latest] = _submit(portal, "echo latest", 1)

        doubts = account["doubts"]
        accounted = [
            each
            for name in ("in_hand", "silent", "again", "waiting")
            for each in doubts[name]["ids"]
        ]
        assert set(accounted) <= set(under_way)
        assert account["contents"]["count"] == 0
        assert len(again["doubts"]["again"]["ids"]) == 2
        assert not again["doubts"]["silent"]["ids"]
        assert [again["told_jobs"], *map(_states(portal).get, before)] == [0, "done", "done"]
        assert all("restored" in _events(portal, each) for each in under_way)
        assert not any("restored" in _events(portal, each) for each in before)
        # An id that was given after the backup is given to nothing else.
        assert after[0] not in _states(portal)
        assert latest > after[0] + 1_000_000
        assert portal.text(f"jobs/{before[0]}/stdout").strip() == "before"


def _refuse_newer_and_damaged(backup: Path, place: Path) -> None:
    whole = (backup / MANIFEST).read_text()
    manifest = json.loads(whole)
    manifest["migrations"]["core"].append("9999_of_a_later_release")
    for text in (json.dumps(manifest), whole.replace('"sha256": "', '"sha256": "0', 1)):
        (backup / MANIFEST).write_text(text)
        refused = _manage(place / "new", "restore", str(backup))
        assert refused.returncode == 1, refused.stdout
        assert not (place / "new" / "postgres").exists()
    (backup / MANIFEST).write_text(whole)
