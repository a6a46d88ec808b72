"""Fixtures of the client's tests: the portal of this process by a transport, and the command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import httpx
import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from pilotage_client import Client
from pilotage_client.cli.main import main

from portal.api.events.waiting import WaitingRoom
from portal.wsgi import application
from tests import factories
from wms.core.models import User

URL = "http://testserver"
_Result = TypeVar("_Result")


def run_in_loop(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Result of what really waits, in a thread of its own: in this one a browser's loop may run."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


@dataclass
class Portal(httpx.BaseTransport):
    """Transport to the portal of this process; `before` sees each request, and may answer it.

    `after` may lose the answer.
    """

    before: Callable[[httpx.Request], httpx.Response | None] = lambda request: None
    after: Callable[[httpx.Request], None] = lambda request: None

    def __post_init__(self) -> None:
        self._wsgi = httpx.WSGITransport(application)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer of the portal, read whole."""
        self.requests.append(request)
        if (given := self.before(request)) is not None:
            return given
        answer = self._wsgi.handle_request(request)
        # As it came: who reads it unpacks it.
        content = b"".join(answer.stream)
        answer.close()
        self.after(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)

    def ask(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Answer to a request without a token."""
        return self.handle_request(httpx.Request(method, f"{URL}/api/v1/{path}", **body))

    def sent(self) -> list[str]:
        """Methods and paths of all requests."""
        return [f"{request.method} {request.url.path}" for request in self.requests]


@dataclass(frozen=True)
class AwaitedPortal(httpx.AsyncBaseTransport):
    """Asynchronous form of the transport; nothing in it waits."""

    portal: Portal

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer of the portal."""
        body = b"".join([piece async for piece in request.stream])
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=body)
        return self.portal.handle_request(asked)


@dataclass(frozen=True)
class Ran:
    """Outcome of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of its output, each as words with one blank between them."""
        return [" ".join(line.split()) for line in self.out.splitlines()]


@pytest.fixture
def people(db: None) -> Iterator[SimpleNamespace]:
    """The standard people; requests share the test's connection."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield factories.people()
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def portal() -> Portal:
    return Portal()


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No profile, no variables of whoever runs the tests, and a folder of one's own."""
    for name in ("URL", "TOKEN", "TOKEN_FILE", "PROFILE", "CA_FILE"):
        monkeypatch.delenv(f"PILOTAGE_{name}", raising=False)
    monkeypatch.setenv("PILOTAGE_CLIENT_CONFIG", str(tmp_path / "config" / "client.toml"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses of the client, which are not waited for; of too many the test fails."""
    found: list[float] = []

    def sleep(seconds: float) -> None:
        found.append(seconds)
        assert len(found) < 100, "it waits for what never comes"

    for module in ("client", "cli.contents", "cli.watching", "cli.following"):
        monkeypatch.setattr(f"pilotage_client.{module}.sleep", sleep)
    return found


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No place to wait for events at the portal, whose changes nobody else sees here."""
    monkeypatch.setattr("portal.api.events.views.WAITING_ROOM", WaitingRoom(0))


@pytest.fixture
def client(people: SimpleNamespace, portal: Portal) -> Iterator[Client]:
    """Alice at the Python API."""
    with Client(URL, factories.token_for(people.alice), transport=portal) as client:
        yield client


@pytest.fixture
def pilotage(
    people: SimpleNamespace, portal: Portal, capsys: Any, monkeypatch: Any
) -> Callable[..., Ran]:
    """Run the command, as Alice unless told otherwise."""
    tokens: dict[int, str] = {}

    def run(*words: object, user: User | None = None) -> Ran:
        whose = user or people.alice
        tokens.setdefault(whose.pk, factories.token_for(whose))
        monkeypatch.setenv("PILOTAGE_URL", URL)
        monkeypatch.setenv("PILOTAGE_TOKEN", tokens[whose.pk])
        return _run(capsys, portal, words)

    return run


@pytest.fixture
def bare_pilotage(people: SimpleNamespace, portal: Portal, capsys: Any) -> Callable[..., Ran]:
    """Run the command without any token in the environment."""
    return lambda *words: _run(capsys, portal, words)


def _run(capsys: Any, portal: Portal, words: tuple[object, ...]) -> Ran:
    capsys.readouterr()
    try:
        code = main(list(map(str, words)), transport=portal)
    except SystemExit as end:
        code = int(end.code or 0)
    told = capsys.readouterr()
    return Ran(code, told.out, told.err)
