"""The nginx of docs/how-to/run-it-for-real.md in front of the real web server."""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from django.db import connection

from portal.cli.listening import Listen
from portal.cli.state_directory import BASE
from portal.cli.supervision import web_command
from portal.embedded.ports import LOOPBACK, free_ports
from portal.middleware.login_throttle import FAILURES_PER_ACCOUNT
from tests import factories
from tests.furnished import copy_static_files

pytestmark = [pytest.mark.scenario, pytest.mark.django_db(transaction=True)]
DOCUMENT = BASE / "docs" / "how-to" / "run-it-for-real.md"
NAME = "portal.example.org"
ORIGIN = f"https://{NAME}"
START_S = 60
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@dataclass(frozen=True)
class Served:
    """Where nginx listens, with TLS and without, and what the portal behind it knows."""

    port: int
    plain_port: int
    environment: dict[str, str]


@dataclass
class Person:
    """Speaks to nginx as to the portal's public name, and keeps cookies."""

    port: int
    plain_port: int
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

    def get(self, path: str, *, is_plain: bool = False) -> http.client.HTTPResponse:
        return self._ask("GET", path, None, {}, is_plain=is_plain)

    def post(
        self, path: str, form: dict[str, str], headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        sent = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": ORIGIN,
            "Referer": f"{ORIGIN}{path}",
        } | (headers or {})
        return self._ask("POST", path, urlencode(form), sent)

    def log_in(self, username: str, password: str, **headers: str) -> http.client.HTTPResponse:
        page = self.get("/login/").read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "username": username, "password": password}
        return self.post("/login/", form, {key.replace("_", "-"): v for key, v in headers.items()})

    def _ask(
        self, method: str, path: str, body: str | None, headers: dict[str, str],
        *, is_plain: bool = False,
    ) -> http.client.HTTPResponse:  # fmt: skip
        sent = {"Host": NAME, "Connection": "close"} | headers
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{k}={v.value}" for k, v in self.cookies.items())
        caller: http.client.HTTPConnection
        if is_plain:
            caller = http.client.HTTPConnection(LOOPBACK, self.plain_port, timeout=30)
        else:
            context = ssl._create_unverified_context()
            caller = http.client.HTTPSConnection(LOOPBACK, self.port, timeout=30, context=context)
        caller.request(method, path, body, sent)
        answer = caller.getresponse()
        for line in answer.headers.get_all("Set-Cookie") or []:
            self.cookies.load(line)
        return answer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Served]:
    """The web server behind nginx."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("nginx and openssl are needed: apt-get install nginx-light openssl")
    folder = tmp_path_factory.mktemp("nginx")
    web_port, tls_port, plain_port = free_ports(3)
    config = _configuration(folder, web_port, tls_port, plain_port)
    environment = _environment(folder)
    copy_static_files(folder)
    programs = [
        subprocess.Popen(
            web_command(Listen(LOOPBACK, web_port)), cwd=BASE, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        ),
        subprocess.Popen([NGINX, "-c", str(config), "-p", str(folder)], stdin=subprocess.DEVNULL),
    ]  # fmt: skip
    try:
        _wait_for(Person(tls_port, plain_port), programs)
        yield Served(tls_port, plain_port, environment)
    finally:
        for program in reversed(programs):
            program.terminate()
            program.wait(timeout=60)


@pytest.fixture
def person(served: Served) -> Person:
    return Person(served.port, served.plain_port)


def _configuration(folder: Path, web_port: int, tls_port: int, plain_port: int) -> Path:
    """The document's server blocks, on ports and with a certificate of the test."""
    [servers] = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", f"/CN={NAME}", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    servers = re.sub(r" +listen \[::\].*\n", "", servers)
    for old, new in (
        ("listen 80;", f"listen {LOOPBACK}:{plain_port};"),
        ("listen 443 ssl;", f"listen {LOOPBACK}:{tls_port} ssl;"),
        (f"/etc/ssl/{NAME}/fullchain.pem", str(certificate)),
        (f"/etc/ssl/{NAME}/privkey.pem", str(key)),
        ("http://127.0.0.1:8000", f"http://{LOOPBACK}:{web_port}"),
    ):
        assert old in servers
        servers = servers.replace(old, new)
    temporary = "".join(
        f"    {name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{user}daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\n"
        f"error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\n    access_log off;\n{temporary}{servers}}}\n"
    )
    return config


def _environment(var: Path) -> dict[str, str]:
    """What the document lets the portal know, and the servers of the tests."""
    of = connection.settings_dict
    place = f"{of['HOST']}:{of['PORT']}" if of["PORT"] else of["HOST"]
    database = f"postgresql://{of['USER']}:{quote(of['PASSWORD'])}@{place}/{of['NAME']}"
    return os.environ | {
        "PILOTAGE_VAR": str(var),
        "PILOTAGE_SECRET_KEY": secrets.token_urlsafe(48),
        "DATABASE_URL": database,
        "PILOTAGE_PUBLIC_URL": ORIGIN,
        "PILOTAGE_ALLOWED_HOSTS": NAME,
        "PILOTAGE_BEHIND_PROXY": "1",
    }


def _wait_for(person: Person, programs: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        assert all(program.poll() is None for program in programs), "a program has ended"
        try:
            if person.get("/health/live").status == 200:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "the web server does not answer through nginx"
        time.sleep(0.1)


def test_http_leads_to_https(person: Person) -> None:
    answer = person.get("/jobs/?state=held", is_plain=True)

    assert (answer.status, answer.headers["Location"]) == (301, f"{ORIGIN}/jobs/?state=held")


def test_pilots_find_the_portal(person: Person) -> None:
    answer = person.get("/health/live")

    assert json.load(answer)["status"] == "ok"


def test_the_first_administrator_logs_in_and_the_browser_is_told_to_keep_to_tls(
    person: Person, served: Served
) -> None:
    made = subprocess.run(
        [sys.executable, "manage.py", "accounts", "add", "ada", "--role", "admin"],
        cwd=BASE, env=served.environment, check=True, capture_output=True, text=True,
    )  # fmt: skip

    answer = person.log_in("ada", made.stdout.strip())

    assert answer.status == 302
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=")
    assert person.cookies["sessionid"]["secure"]
    assert person.get("/").status == 200


def test_a_form_from_another_origin_is_refused(person: Person) -> None:
    answer = person.log_in("alice", "whatever", Origin="https://elsewhere.example.org")

    assert answer.status == 403


def test_who_claims_other_addresses_is_locked_out_all_the_same(person: Person) -> None:
    factories.person("bob")

    told = [
        person.log_in("bob", f"wrong {number}", X_Forwarded_For=f"192.0.2.{number}").status
        for number in range(FAILURES_PER_ACCOUNT + 1)
    ]

    assert told == [*[200] * FAILURES_PER_ACCOUNT, 429]


def test_a_claim_of_tls_is_set_anew(person: Person) -> None:
    """What came with TLS is told so, whatever the client says."""
    answer = person.post("/login/", {}, {"X-Forwarded-Proto": "http"})

    assert "Strict-Transport-Security" in answer.headers
