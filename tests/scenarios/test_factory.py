"""Two installations, each on a host of its own: one has the jobs, the other submits the pilots.

The factory calls the frontend over TLS and is reached by nobody. The wire between them is cut; then
the direction is turned round, so that the factory calls nobody, and it is killed with all its
programs. No job is lost, and none is run twice.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from django.utils import timezone

from portal.cli.client import Client, Part, Unreachable
from portal.cli.state_directory import BASE
from tests.furnished import copy_static_files, copy_tables
from tests.scenarios.namespaces import (
    ADDRESSES,
    FACTORY,
    FRONTEND,
    SEEN,
    TLS_PORT,
    Hosts,
    two_hosts,
    why_not,
)
from tests.scenarios.running_demo import FOREIGN, wait_for

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.apart]

_OPENER = build_opener(ProxyHandler({}))
JOBS = 4
QUICK = {
    "PILOTAGE_AGENT_HEARTBEAT_S": "1",
    "PILOTAGE_AGENT_IDLE_LIMIT_S": "8",
    "PILOTAGE_RESCHEDULE_PAUSES_S": "1,2",
    "PILOTAGE_FACTORY_LEASE_S": "12",
    "PILOTAGE_FACTORY_STALE_S": "8",
}
_BEGIN = """
import json, sys
import django
django.setup()
from portal.cli.demo_site import prepare_operator
from portal.cli.state_directory import StateDirectory
from wms.core.actors import Actor
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site
actor = Actor.system("test")
token = ""
"""
_SET_UP = {
    "frontend": """
from wms.factories.models import RemoteFactory
from wms.factories.services import create_factory
token = create_factory(RemoteFactory(name="north"), actor=actor)
configure_site(SiteSpec(name="lab"), [QueueSpec(
    name="main", element="factory", settings={"factory": "north", "entry": "grid/main"},
    max_pilots=4, max_queued_pilots=4, attenuation=1.0, memory_mb=100, wall_time_s=3600,
    fence="none", hold_after_failure_s=0,
)], actor=actor)
""",
    "factory": """
from wms.accounting.frontends import save_frontend
from wms.accounting.models import Frontend
from wms.pilots.factories.services import save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend
from wms.sites.frontends.models import FrontendEntry
from wms.sites.frontends.entries import save_entry
configure_site(SiteSpec(name="grid"), [QueueSpec(
    name="main", element="host", settings={"slots": 2}, max_pilots=2, max_queued_pilots=2,
    attenuation=1.0, memory_mb=100, wall_time_s=3600, fence="none",
)], actor=actor)
south = Frontend(name="south")
save_frontend(south, actor=actor)
save_entry(FrontendEntry(frontend=south, queue=Queue.objects.get()), actor=actor)
save_remote_frontend(
    RemoteFrontend(frontend=south, url=sys.argv[1], factory_name="north"), actor=actor
)
""",
}
_TURN_ROUND = {
    "factory": """
from wms.pilots.factories.callers import renew_caller_token
from wms.pilots.factories.services import save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend
remote = RemoteFrontend.objects.get()
remote.url = remote.factory_name = ""
save_remote_frontend(remote, actor=actor)
token = renew_caller_token(remote, actor=actor, reason="it calls now")
""",
    "frontend": """
from wms.factories.models import RemoteFactory
from wms.factories.services import save_factory
factory = RemoteFactory.objects.get()
factory.url, factory.frontend_name = sys.argv[1], "south"
save_factory(factory, actor=actor)
""",
}
_END = """
operator = prepare_operator(StateDirectory.from_environment(), actor=actor)
print(json.dumps([operator.token, token]))
"""


class Installation:
    """A portal on a host of its own: its programs, and its API as an operator."""

    def __init__(self, hosts: Hosts, host: str, var: Path) -> None:
        self.hosts, self.host, self.var = hosts, host, var
        url = f"https://{FRONTEND}:{TLS_PORT}"
        own = {
            "PILOTAGE_VAR": str(var),
            "PILOTAGE_LISTEN": f"{SEEN[host]}:8000",
            "PILOTAGE_ALLOWED_HOSTS": f"{SEEN[host]},{ADDRESSES[host]},127.0.0.1",
            "PILOTAGE_PUBLIC_URL": url if host == "frontend" else f"http://{SEEN[host]}:8000",
            "PILOTAGE_FRONTEND_TOKENS_DIR": str(var / "tokens"),
            "PILOTAGE_FACTORY_TOKENS_DIR": str(var / "tokens"),
        }
        ours = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        self.environment = ours | QUICK | own
        self.url = f"http://{SEEN[host]}:8000"
        self.client = Client(self.url, "")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start all programs."""
        command = self.hosts.inside(self.host, sys.executable, str(BASE / "manage.py"), "up")
        with (self.var / "up.out").open("ab") as out:
            self.process = subprocess.Popen(
                command, cwd=BASE, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def await_answer(self) -> None:
        """Return when the web server answers: on a busy host that takes a while."""
        wait_for(f"the {self.host} answers", self._is_up, timeout_s=240)

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self._said()
        try:
            _OPENER.open(f"{self.url}/health/live", timeout=10).close()
        except OSError:
            return False
        return True

    def _said(self) -> str:
        return (self.var / "up.out").read_text()

    def set_up(self, how: Mapping[str, str], address: str = "") -> str:
        """Configure the installation; return the token that the other one is given to call it."""
        code = _BEGIN + how[self.host] + _END
        command = [sys.executable, "-c", code, f"https://{address}:{TLS_PORT}"]
        done = subprocess.run(
            self.hosts.inside(self.host, *command), cwd=BASE, capture_output=True, text=True,
            check=False, env=self.environment | {"DJANGO_SETTINGS_MODULE": "portal.settings"},
        )  # fmt: skip
        assert not done.returncode, done.stderr
        own, token = json.loads(done.stdout.splitlines()[-1])
        self.client = Client(self.url, own)
        return str(token)

    def get(self, path: str) -> dict[str, Any]:
        """Answer of the API; an empty object while the web server is away."""
        try:
            return dict(self.client.get(path))
        except Unreachable:
            return {}

    def pilots(self) -> Counter[str]:
        """Pilots by state."""
        found = self.get("pilots/?page_size=200").get("results", [])
        return Counter(pilot["state"] for pilot in found)

    def kill(self) -> None:
        """End all programs by SIGKILL, those that they supervise included, but no pilot."""
        for number in self._programs():
            os.kill(number, signal.SIGKILL)
        if self.process is not None:
            self.process.wait(timeout=30)
        # They leave their ports when they are gone, which takes a moment.
        wait_for("all programs are gone", lambda: not self._programs())

    def _programs(self) -> list[int]:
        numbers = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [int(entry.name) for entry in numbers if self._is_ours(entry)]

    def _is_ours(self, entry: Path) -> bool:
        """A program that was started with our settings: pilots see none of them."""
        try:
            return f"PILOTAGE_VAR={self.var}\0".encode() in (entry / "environ").read_bytes()
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)


@contextmanager
def _both(folder: Path) -> Iterator[tuple[Hosts, Installation, Installation]]:
    with two_hosts(folder) as hosts:
        made = {}
        for host in SEEN:
            (folder / host).mkdir()
            copy_tables(folder / host)
            copy_static_files(folder / host)
            made[host] = Installation(hosts, host, folder / host)
        try:
            for each in made.values():
                each.start()
            for each in made.values():
                each.await_answer()
            for each in made.values():
                (each.var / "tokens").mkdir()
            token = made["frontend"].set_up(_SET_UP)
            (folder / "factory/tokens/south").write_text(token)
            made["factory"].set_up(_SET_UP, FRONTEND)
            yield hosts, made["frontend"], made["factory"]
        finally:
            # All of it, also after one that does not end in time.
            with ExitStack() as ending:
                for each in made.values():
                    ending.callback(each.kill)
                    ending.callback(each.stop)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    made = Path(tempfile.mkdtemp(prefix="pilotage-two-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def _submit(frontend: Installation, folder: Path) -> str:
    """Send a DAG of jobs that depend on nothing; return its address in the API."""
    lines = [f"JOB n{number} step.sub" for number in range(JOBS)]
    for name, text in (
        ("wide.dag", "\n".join(lines) + "\n"),
        ("step.sub", "executable = step.sh\nqueue\n"),
        ("step.sh", "#!/bin/sh\nsleep 14\n"),
    ):
        (folder / name).write_text(text)
    parts = [Part("dag", folder / "wide.dag"), Part("file", folder / "step.sub"),
             Part("file", folder / "step.sh")]  # fmt: skip
    made = frontend.client.post_files("dags/", parts, key=secrets.token_hex(16))
    return f"dags/{made['id']}/"


def _done(frontend: Installation, dag: str) -> int:
    return int(frontend.get(dag).get("nodes", {}).get("done", 0))


def _is_over(factory: Installation) -> bool:
    """Whether the frontend's request is over at the factory, which has taken back what waited."""
    until = factory.get("remote-frontends/south/").get("lease_until")
    return bool(until) and datetime.fromisoformat(until) + timedelta(seconds=6) < timezone.now()


def _answered_at(factory: Installation) -> datetime:
    """When the frontend was last in touch with the factory, by a call of either."""
    told = factory.get("remote-frontends/south/").get("answered_at")
    return datetime.fromisoformat(told) if told else datetime.min.replace(tzinfo=UTC)


def _ad(frontend: Installation) -> Mapping[str, Any]:
    entries = frontend.get("remote-factories/north/").get("entries") or [{"facts": {}}]
    return dict(entries[0]["facts"])


def _turn_round(hosts: Hosts, frontend: Installation, factory: Installation) -> None:
    """From now on the frontend calls the factory."""
    hosts.open("factory")
    token = factory.set_up(_TURN_ROUND)
    (frontend.var / "tokens/north").write_text(token)
    frontend.set_up(_TURN_ROUND, FACTORY)


def test_a_factory_behind_a_firewall_runs_the_jobs_of_another_installation(folder: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with _both(folder) as (hosts, frontend, factory):
        assert not hosts.reaches("frontend", SEEN["factory"], 8000)
        assert not hosts.reaches("frontend", FACTORY, TLS_PORT)
        assert hosts.reaches("factory", FRONTEND, TLS_PORT)
        dag = _submit(frontend, folder)
        wait_for("two pilots run, others wait", lambda: (
            factory.pilots()["running"] == 2 and frontend.pilots()["running"] == 2
            and _ad(frontend).get("waiting") == 2
        ))  # fmt: skip

        # The frontend is away for longer than its request holds.
        hosts.cut()
        wait_for("what waits is given back", lambda: (
            "s ago" in " ".join(frontend.get("sites/lab/queues/main/pressure/")
                                .get("request", {}).get("reasons", []))
            and _is_over(factory)
        ), timeout_s=40)  # fmt: skip
        assert factory.pilots()["removed"] == 0
        assert frontend.pilots()["running"] + frontend.pilots()["stalled"] == 2
        hosts.mend()
        wait_for("new pilots are ordered", lambda: frontend.pilots()["aborted"] >= 2, timeout_s=60)

        # The factory calls no more, is called, and is away with all that it was about to do.
        _turn_round(hosts, frontend, factory)
        turned_at = timezone.now()
        wait_for("orders are brought", lambda: _answered_at(factory) > turned_at, timeout_s=60)
        factory.kill()
        factory.start()
        factory.await_answer()
        wait_for("all jobs are done", lambda: _done(frontend, dag) == JOBS, timeout_s=120)

        jobs = frontend.get(f"jobs/?dag={dag.split('/')[1]}&page_size=100")["results"]
        # A pilot that was away for long may have lost its job: it was run again, and ended once.
        for job in jobs:
            attempts = frontend.client.get(f"jobs/{job['id']}/")["attempts"]
            assert [each["outcome"] for each in attempts].count("done") == 1, attempts
        wait_for("both agree that nothing is left", lambda: (
            not {"submitted", "queued", "running"} & set(+frontend.pilots())
            and not {"submitted", "queued", "running"} & set(+factory.pilots())
        ), timeout_s=120)  # fmt: skip
        registered = sum(
            pilot["registered_at"] is not None
            for pilot in frontend.get("pilots/?page_size=200")["results"]
        )
        # What ran to its end there called in here, once; what was taken back as it began may have.
        there = factory.pilots()
        assert there["done"] + there["failed"] <= registered <= there.total(), there
