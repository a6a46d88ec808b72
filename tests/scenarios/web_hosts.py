"""Web servers as on hosts of their own: a folder each, and one database, broker and bucket."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from django.conf import settings as django_settings
from django.db import connection

from portal.cli.listening import Listen
from portal.cli.state_directory import BASE
from portal.cli.supervision import web_command
from portal.embedded.ports import LOOPBACK, free_ports
from tests.s3.server import BUCKET, S3Server
from tests.scenarios.running_demo import wait_for

START_S = 90


@contextmanager
def web_hosts(folders: list[Path], store: S3Server, **settings: str) -> Iterator[list[str]]:
    """Addresses of one web server for each folder, on the tests' database; they answer."""
    shared = os.environ | _database() | _bucket(store) | settings
    # Sessions that tests begin are good there.
    shared["PILOTAGE_SECRET_KEY"] = django_settings.SECRET_KEY
    ports = free_ports(len(folders))
    with ExitStack() as cleanup:
        programs = [
            cleanup.enter_context(_program(port, shared | {"PILOTAGE_VAR": str(folder)}))
            for port, folder in zip(ports, folders, strict=True)
        ]
        urls = [f"http://{LOOPBACK}:{port}" for port in ports]
        for url, program in zip(urls, programs, strict=True):
            _wait_for(url, program)
        yield urls


@contextmanager
def _program(port: int, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    folder = Path(environment["PILOTAGE_VAR"])
    folder.mkdir()
    with (folder / "web.log").open("wb") as log:
        program = subprocess.Popen(
            web_command(Listen(LOOPBACK, port)), cwd=BASE, env=environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield program
        finally:
            program.terminate()
            program.wait(timeout=60)


def _wait_for(url: str, program: subprocess.Popen[bytes]) -> None:
    opener = build_opener(ProxyHandler({}))

    def answers() -> bool:
        assert program.poll() is None, "a web server has ended"
        with suppress(URLError, ConnectionError):
            opener.open(f"{url}/health/live", timeout=30).close()
            return True
        return False

    wait_for("a web server answers", answers, timeout_s=START_S)


def _database() -> dict[str, str]:
    of = connection.settings_dict
    place = f"{of['HOST']}:{of['PORT']}" if of["PORT"] else of["HOST"]
    account = f"{of['USER']}:{quote(of['PASSWORD'])}"
    return {"DATABASE_URL": f"postgresql://{account}@{place}/{of['NAME']}"}


def _bucket(store: S3Server) -> dict[str, str]:
    return {
        "PILOTAGE_BLOBS_S3_BUCKET": BUCKET,
        "PILOTAGE_BLOBS_S3_URL": store.url,
        "PILOTAGE_BLOBS_S3_KEY_ID": store.key_id,
        "PILOTAGE_BLOBS_S3_SECRET": store.secret,
    }
