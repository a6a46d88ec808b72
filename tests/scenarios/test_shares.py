"""Two collaborations share a Slurm, an HTCondor pool and a host behind ssh.

Each gets its share of each, logs in as itself, and finds nothing of the other's. How long the load
lasts is said by `--load-seconds`.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from portal.cli.client import Client
from tests.batch_systems.services import Unavailable
from tests.batch_systems.two_accounts import ACCOUNTS
from tests.scenarios.pages import Pages
from tests.scenarios.running_demo import wait_for
from tests.scenarios.running_portal import RunningPortal, running_portal
from tests.scenarios.shared_sites import (
    PEOPLE,
    PLACES,
    SHARES,
    Sites,
    account_of,
    measured,
    shared_sites,
)

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.apart]

#: Per cent of an entry's places.
TOLERANCE = 5.0
START_LIMIT_S = 240
JOBS, JOB_S = 20_000, 15
OTHER = {"aquila": "borealis", "borealis": "aquila"}
#: A pilot takes a job that may take 500 s, so it is relieved after the rest of its time.
_CPU_TIME_S, _LIFE_S = 500, 90
QUICK = {
    "PILOTAGE_AGENT_HEARTBEAT_S": "5",
    "PILOTAGE_AGENT_IDLE_LIMIT_S": "10",
    "PILOTAGE_AGENT_RETIRE_SPREAD_S": "30",
}
_LINK = re.compile(r'(?:href|hx-get|data-url)="(/[^"#]*)')
#: What makes a page one of many of its kind: ids, and the question behind its address.
_OWN = re.compile(r"\?.*|[0-9a-f]{8}-[0-9a-f-]{27}|\d+")
_MOST_ALIKE, _MOST_PAGES = 2, 120


@pytest.fixture
def var() -> Iterator[Path]:
    """A folder with a path short enough for a socket, which all accounts may enter."""
    folder = Path(tempfile.mkdtemp(prefix="pilotage-shares-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sites(var: Path) -> Iterator[Sites]:
    try:
        with shared_sites(var) as found:
            yield found
    except Unavailable as error:
        pytest.skip(str(error))


class Collaboration:
    """What one collaboration's person and program can do."""

    def __init__(self, portal: RunningPortal, name: str, token: str, password: str) -> None:
        self.name, self.url = name, portal.url
        self.client = Client(portal.url, token)
        self.pages = Pages(portal.url, PEOPLE[name], password)

    def submit(self) -> int:
        """Submit more jobs than can run in any time."""
        told = {
            "name": f"{self.name}-load",
            "group": self.name,
            "shell": f"echo {self.name}; sleep {JOB_S}",
            "memory_mb": 100,
            "cpu_time_s": _CPU_TIME_S,
            "max_idle": 200,
            "eager": False,
            "queue": JOBS,
        }
        request = urllib.request.Request(
            f"{self.url}/api/v1/jobs/",
            json.dumps(told).encode(),
            {"Content-Type": "application/json", "Idempotency-Key": secrets.token_hex(8)},
        )
        return int(json.loads(self._opened(request))["id"])

    def has_waiting(self) -> bool:
        """Whether TaskQueues have jobs of it."""
        return any(each["waiting_jobs"] for each in self.client.get("task-queues/")["results"])

    def running(self) -> dict[str, int]:
        """Its pilots that run, by site."""
        entries = self.client.get(f"frontends/{self.name}/entries/")
        return {each["site"]: each["running"] for each in entries}

    def ask(self, path: str) -> tuple[int, str]:
        """Status and text of the API's answer."""
        try:
            return 200, self._opened(urllib.request.Request(f"{self.url}/api/v1/{path}"))
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(errors="replace")

    def _opened(self, request: urllib.request.Request) -> str:
        request.add_header("Authorization", f"Token {self.client.token}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return str(answer.read().decode(errors="replace"))


def test_each_collaboration_gets_its_share_as_itself_and_sees_nothing_of_the_other(
    var: Path, sites: Sites, pytestconfig: pytest.Config
) -> None:
    load_s = pytestconfig.getoption("--load-seconds")
    password = secrets.token_hex(8)
    with running_portal(var / "var", {"name": "nowhere"}, [], **QUICK) as portal:
        tokens = sites.set_up(password, _CPU_TIME_S + max(_LIFE_S, load_s // 8))
        both = [Collaboration(portal, name, tokens[name], password) for name in PEOPLE]
        clusters = {each.name: each.submit() for each in both}
        wait_for("jobs of both wait", lambda: all(each.has_waiting() for each in both))
        sites.begin()
        wait_for("all places are taken", lambda: _taken(both) == 3 * PLACES,
                 timeout_s=START_LIMIT_S)  # fmt: skip

        since = datetime.now(UTC)
        until = time.monotonic() + load_s
        _check_credentials(portal, sites)
        for each in both:
            _check_walls(portal, each, clusters[OTHER[each.name]])
        time.sleep(max(0.0, until - time.monotonic()))

        shares = _shares(measured(since.isoformat(), datetime.now(UTC).isoformat()))
        sys.stderr.write(f"\nper cent of each entry in {load_s} s: {shares}\n")
    for site, by_name in SHARES.items():
        for name, share in by_name.items():
            due = 100 * share / sum(by_name.values())
            assert shares[site][name] == pytest.approx(due, abs=TOLERANCE), shares


def _taken(both: list[Collaboration]) -> int:
    return sum(sum(each.running().values()) for each in both)


def _shares(seconds: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        site: {name: round(100 * each / sum(by_name.values()), 1) for name, each in by_name.items()}
        for site, by_name in seconds.items()
    }


def _check_credentials(portal: RunningPortal, sites: Sites) -> None:
    """Each pilot was submitted with its frontend's credential, and the batch systems tell so."""
    for told in _running_pilots(portal):
        assert told["credential"] == f"{told['frontend']}-{told['site']}", told
    logged = (sites.login.folder / "sshd.log").read_text()
    assert all(each in logged for each in sites.key_prints().values())
    owners = sites.condor.run("condor_q", "-allusers", "-af", "Owner").split()
    assert set(owners) == {"pilot", "nobody"}
    for name, account in account_of().items():
        folders = list((sites.accounts.directory(account) / "pilots").iterdir())
        assert folders, name
        assert {each.stat().st_uid for each in folders} == {ACCOUNTS[account]}


def _check_walls(portal: RunningPortal, who: Collaboration, others_cluster: int) -> None:
    """No call and no page that one can ask for tells of the other's objects."""
    hidden = _hidden(portal, OTHER[who.name], others_cluster)
    for path in hidden:
        status, text = who.ask(path)
        assert status in {403, 404}, (path, text[:300])
    status, text = who.ask(f"history/panes/jobs.json?frontend={OTHER[who.name]}")
    assert (status, "no such frontend" in text) == (400, True)
    for path in _readable(portal):
        if "{" not in path:
            status, text = who.ask(path)
            assert status < 500, path
            assert OTHER[who.name] not in text, path
    for path, text in _all_pages(who).items():
        assert OTHER[who.name] not in text, path


def _hidden(portal: RunningPortal, frontend: str, cluster: int) -> list[str]:
    """Addresses of one frontend's objects, as an operator finds them."""
    job = portal.client.get(f"clusters/{cluster}/jobs/?state=running&page_size=1")["results"][0]
    pilot = next(each for each in _running_pilots(portal) if each["frontend"] == frontend)
    values = {
        "cluster_id": cluster, "job_id": job["id"], "uuid": pilot["uuid"], "frontend": frontend,
        "path": "stdout",
    }  # fmt: skip
    found = []
    for path in _readable(portal):
        names = set(re.findall(r"{(\w+)}", path))
        if names & (values.keys() - {"path"}) and names <= values.keys():
            found.append(path.format(**values))
    assert len(found) > 15, found
    return found


def _running_pilots(portal: RunningPortal) -> list[dict[str, Any]]:
    listed = portal.all("pilots/?state=running&page_size=100")
    return [portal.client.get(f"pilots/{each['uuid']}/") for each in listed]


def _readable(portal: RunningPortal) -> list[str]:
    """Addresses of the API that can be read, with names in braces for ids."""
    schema = json.loads(portal.text("schema/?format=json"))
    return [
        path.removeprefix("/api/v1/")
        for path, methods in schema["paths"].items()
        if "get" in methods
    ]


def _all_pages(who: Collaboration) -> dict[str, str]:
    """Pages that links lead to from the overview, some of each kind."""
    found: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    waiting = ["/"]
    while waiting and len(found) < _MOST_PAGES:
        path = waiting.pop(0)
        try:
            found[path] = who.pages.html(path.lstrip("/"))
        except urllib.error.HTTPError as error:
            with error:
                found[path] = error.read().decode(errors="replace")
        for link in _LINK.findall(found[path]):
            link = link.replace("&amp;", "&")
            kind = _OWN.sub("", link)
            is_new = link not in found and link not in waiting and kinds[kind] < _MOST_ALIKE
            if is_new and _is_page(link):
                kinds[kind] += 1
                waiting.append(link)
    assert len(found) > 30, list(found)
    return found


def _is_page(link: str) -> bool:
    return not link.startswith(("/static/", "/admin/", "/api/", "/logout"))
