"""Running portal in a folder of its own, with the sites that a test describes; its API and pages.

A program of it can be killed from outside.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from portal.cli.child import ChildPortal
from portal.cli.client import Client, Unreachable
from portal.cli.demo_site import OPERATOR
from portal.cli.state_directory import BASE, StateDirectory
from tests.furnished import copy_static_files, copy_tables
from tests.scenarios.pages import Pages
from tests.scenarios.running_demo import FOREIGN, keep_a_port
from tests.scenarios.supervised import kill_program

_SET_UP = """
import json, sys
import django
django.setup()
from portal.cli.demo_site import prepare_operator
from portal.cli.state_directory import StateDirectory
from wms.core.actors import Actor
from wms.sites.services import QueueSpec, SiteSpec, configure_site
actor = Actor.system("test")
given = json.load(sys.stdin)
queues = [QueueSpec(**each) for each in given["queues"]]
configure_site(SiteSpec(**given["site"]), queues, actor=actor)
print(prepare_operator(StateDirectory.from_environment(), actor=actor).token)
"""


class RunningPortal:
    """The portal's address and programs, and its API as an operator."""

    def __init__(self, place: StateDirectory, portal: ChildPortal, token: str) -> None:
        self.place = place
        self.url = portal.local_url
        self.client = Client(portal.local_url, token)

    def get(self, path: str) -> Any:
        """Answer of the API; an empty object while the web server is away."""
        try:
            return self.client.get(path)
        except Unreachable:
            return {}

    def text(self, path: str) -> str:
        """The content of a file that the API gives."""
        request = Request(f"{self.url}/api/v1/{path}")
        request.add_header("Authorization", f"Token {self.client.token}")
        with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
            return answer.read().decode()

    def pages(self) -> Pages:
        """The pages as the operator sees them."""
        return Pages(self.url, OPERATOR, (self.place.run / "operator.password").read_text().strip())

    def all(self, path: str) -> list[dict[str, Any]]:
        """Every entry of a list of the API."""
        found: list[dict[str, Any]] = []
        answer = self.client.get(path)
        while True:
            found += answer["results"]
            if not answer.get("next"):
                return found
            answer = self.client.get(answer["next"].split("/api/v1/", 1)[1])

    def kill(self, program: str) -> None:
        """End a program by SIGKILL, and return when it runs again."""
        kill_program(self.place, program)


@contextmanager
def running_portal(
    var: Path, site: Mapping[str, Any], queues: Sequence[Mapping[str, Any]], **settings: str
) -> Iterator[RunningPortal]:
    """A portal on the folder `var` with one site; it ends with the block."""
    copy_tables(var)
    with started(var, **settings) as (place, portal):
        yield RunningPortal(place, portal, _set_up({"site": site, "queues": queues}))


@contextmanager
def started(var: Path, **settings: str) -> Iterator[tuple[StateDirectory, ChildPortal]]:
    """A portal on the folder `var` as it is; commands of the block have its environment."""
    copy_static_files(var)
    before = dict(os.environ)
    environment = {name: v for name, v in before.items() if name not in FOREIGN}
    os.environ.clear()
    os.environ.update(environment | settings | {"PILOTAGE_VAR": str(var)})
    try:
        keep_a_port(var)
        place = StateDirectory(var)
        with ChildPortal(place) as portal:
            yield place, portal
    finally:
        os.environ.clear()
        os.environ.update(before)


def _set_up(given: Mapping[str, Any]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _SET_UP],
        input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60, cwd=BASE,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "portal.settings"},
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout.split()[-1]
