"""A portal whose broker or database is away: it says so, and shows no trace and no hanging page."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from portal.embedded.ports import free_ports
from portal.embedded.temporary import TemporaryServers
from tests.factories import PASSWORD
from tests.furnished import copy_static_files
from tests.migrated import fill

pytestmark = [pytest.mark.slow, pytest.mark.process]

ROOT = Path(__file__).resolve().parents[2]
#: Health is told within this time, whatever is away; it is the patience of these requests.
PATIENCE_S = 5
_MAKE_USER = (
    "from wms.core.models import User; "
    f"User.objects.create_user('alice', password={PASSWORD!r}, role='user')"
)


@dataclass
class Answer:
    """What a page answered."""

    status: int
    text: str
    headers: Any


@dataclass
class Portal:
    """A web server with its own servers behind it, and Alice's browser."""

    url: str
    servers: TemporaryServers
    browser: urllib.request.OpenerDirector

    def get(self, path: str, timeout_s: float = 30, **form: str) -> Answer:
        """The answer to a request; with a form it is posted."""
        data = urllib.parse.urlencode(form).encode() if form else None
        request = urllib.request.Request(self.url + path, data, {"Referer": self.url})
        try:
            with self.browser.open(request, timeout=timeout_s) as answer:
                return Answer(answer.status, answer.read().decode(), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode(), error.headers)

    def checks(self) -> dict[str, Any]:
        """What health says, within its time."""
        answer = self.get("/health/ready", timeout_s=PATIENCE_S)
        assert answer.status == 503
        found: dict[str, Any] = json.loads(answer.text)["checks"]
        return found

    def postgres_pid(self) -> int:
        """The process of the database."""
        pid_file = next(self.servers.folder.glob("postgres/**/postmaster.pid"))
        return int(pid_file.read_text().split()[0])


def _manage(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "manage.py", *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    """Gunicorn with one worker, logged in to as Alice."""
    (port,) = free_ports(1)
    with TemporaryServers() as servers:
        environment = os.environ | {
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
            "PILOTAGE_VAR": str(tmp_path),
            "PILOTAGE_PUBLIC_URL": f"http://127.0.0.1:{port}",
        }
        copy_static_files(tmp_path)
        fill(servers.database_url)
        _manage(environment, "shell", "-c", _MAKE_USER)
        command = [
            *(sys.executable, "-m", "gunicorn", "portal.wsgi"),
            *("--bind", f"127.0.0.1:{port}", "--threads", "4"),
        ]
        with (tmp_path / "gunicorn.log").open("wb") as log:
            server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            yield _logged_in(Portal(f"http://127.0.0.1:{port}", servers, _browser()))
        finally:
            server.terminate()
            server.wait(30)


def _browser() -> urllib.request.OpenerDirector:
    jar = http.cookiejar.CookieJar()
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))


def _logged_in(portal: Portal) -> Portal:
    for _ in range(300):
        try:
            portal.get("/health/live")
            break
        except urllib.error.URLError:
            signal.sigtimedwait([], 0.1)
    page = portal.get("/login/").text
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token is not None
    done = portal.get("/login/", username="alice", password=PASSWORD, csrfmiddlewaretoken=token[1])
    assert 'aria-label="Main"' in done.text
    return portal


def test_what_is_away_is_told_and_pages_show_what_they_can(portal: Portal) -> None:
    database = portal.postgres_pid()

    # A database that does not answer.
    os.kill(database, signal.SIGSTOP)
    try:
        assert portal.checks()["database"] == "unavailable"
        assert portal.get("/health/live", timeout_s=PATIENCE_S).status == 200
    finally:
        os.kill(database, signal.SIGCONT)
    assert portal.checks()["database"] == "ok"  # no loop runs here, so not all is well

    # A broker that is gone.
    portal.servers.redis.terminate()
    portal.servers.redis.wait(30)
    checks = portal.checks()
    assert (checks["broker"], checks["database"]) == ("unavailable", "ok")
    for path in ("/", "/dags/", "/sites/", "/history/", "/audit/", "/downtimes/"):
        answer = portal.get(path)
        assert (path, answer.status) == (path, 200)
        assert "Traceback" not in answer.text

    # And a database that is gone too.
    os.kill(database, signal.SIGKILL)
    assert portal.checks()["database"] == "unavailable"
    for path in ("/", "/dags/", "/api/v1/dags/"):
        answer = portal.get(path)
        assert (path, answer.status) == (path, 503)
        assert "The portal cannot reach its database" in answer.text or "api" in path
        assert answer.headers["X-Request-ID"] in answer.text
        assert "Traceback" not in answer.text
