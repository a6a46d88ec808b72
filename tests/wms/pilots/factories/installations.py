"""Two installations in one database: one has the jobs, one is the factory; and the line between.

`south` is the frontend's name at the factory, `north` the factory's at the frontend.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.test import Client
from django.utils import timezone

from tests.wms.pilots.directing import direct, poll
from tests.wms.pilots.fake_element import FakeElement
from wms.accounting.frontends import save_frontend
from wms.accounting.models import Frontend
from wms.core.actors import Actor
from wms.core.models import User
from wms.elements.protocol import BatchState, PilotState
from wms.factories.messages import Orders, Report, as_json, orders_of
from wms.factories.models import RemoteFactory
from wms.factories.services import create_factory
from wms.pilots.factories import calling, calls, turns
from wms.pilots.factories.callers import renew_caller_token
from wms.pilots.factories.calls import CallFailed
from wms.pilots.factories.services import save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.models import Pilot
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site


class Line:
    """The way from the factory to the frontend: it can be cut before or behind the frontend."""

    def __init__(self) -> None:
        self.loses_call = self.loses_answer = False
        self.answers: list[Orders] = []

    def call(self, remote: RemoteFrontend, token: str, report: Report) -> Orders:
        """Stands for `calls.call`: everything but the socket is as between two hosts."""
        if self.loses_call:
            raise CallFailed("the line is cut")
        answer = post(f"{remote.factory_name}:{token}", as_json(report))
        if self.loses_answer:
            raise CallFailed("the line was cut")
        if answer.status_code != 200:
            raise CallFailed(answer.json()["detail"])
        self.answers.append(orders_of(json.loads(answer.content)))
        return self.answers[-1]


class LineToFactory:
    """The way from the frontend to the factory: `loses` names what gets lost of a turn.

    `report` or `orders` before they are sent, `report answer` or `orders answer` on the way back.
    """

    def __init__(self) -> None:
        self.loses = ""
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def post(self, line: calls.Line, path: str, body: dict[str, Any], *, most_bytes: int) -> bytes:
        """Stands for `calls.post`: everything but the socket is as between two hosts."""
        if self.loses == path:
            raise CallFailed("the line is cut")
        self.sent.append((path, body))
        answer = post(f"{line.name}:{line.token}", body, path=path)
        if self.loses == f"{path} answer":
            raise CallFailed("the line was cut")
        if answer.status_code != 200:
            raise CallFailed(answer.json()["detail"])
        assert len(answer.content) <= most_bytes
        content: bytes = answer.content
        return content


def post(credential: str, report: object, *, path: str = "exchange") -> Any:
    """Answer of the called installation to a call."""
    return Client().post(
        f"/factory/v1/{path}",
        json.dumps(report),
        content_type="application/json",
        headers={"Authorization": f"Bearer {credential}"},
    )


def install(
    make_queue: Callable[..., Queue], olga: User, tokens: Path, **entry: object
) -> tuple[Queue, Queue, RemoteFrontend]:
    """The frontend's queue, the factory's, and the frontend as the factory knows it."""
    factory = RemoteFactory(name="north")
    token = create_factory(factory, actor=Actor.person(olga))
    tokens.mkdir(exist_ok=True)
    (tokens / "south").write_text(token)
    address = {"url": "https://south.example.org", "factory_name": "north"}
    return _queues_and_remote(make_queue, olga, address, entry)


def install_called(
    make_queue: Callable[..., Queue], olga: User, tokens: Path
) -> tuple[Queue, Queue, RemoteFrontend]:
    """Both installations, where the frontend calls the factory."""
    actor = Actor.person(olga)
    factory = RemoteFactory(name="north", url="https://north.example.org", frontend_name="south")
    create_factory(factory, actor=actor)
    here, there, remote = _queues_and_remote(make_queue, olga, {}, {})
    tokens.mkdir(exist_ok=True)
    token = renew_caller_token(remote, actor=actor, reason="the first one")
    (tokens / "north").write_text(token)
    return here, there, remote


def _queues_and_remote(
    make_queue: Callable[..., Queue],
    olga: User,
    address: dict[str, str],
    entry: dict[str, object],
) -> tuple[Queue, Queue, RemoteFrontend]:
    actor = Actor.person(olga)
    there = make_queue("site-x")
    south = Frontend(name="south")
    save_frontend(south, actor=actor)
    save_entry(FrontendEntry(frontend=south, queue=there, **entry), actor=actor)  # type: ignore[misc]
    save_entry(FrontendEntry(frontend=None, queue=there, share=0), actor=actor)
    remote = RemoteFrontend(frontend=south, **address)
    save_remote_frontend(remote, actor=actor)
    spec = QueueSpec(
        name="main",
        element="factory",
        settings={"factory": "north", "entry": "site-x/main"},
        max_pilots=10,
        max_queued_pilots=10,
        attenuation=1.0,
    )
    made = configure_site(SiteSpec(name="site-f"), [spec], actor=actor)
    here = Queue.objects.select_related("site").get(site=made)
    return here, there, remote


def exchange(remote: RemoteFrontend, now: datetime) -> bool:
    """One turn of the factory, whatever pause it makes after a failure."""
    RemoteFrontend.objects.filter(pk=remote.pk).update(next_at=None)
    return turns.call_frontend(remote.pk, now)


class Two:
    """Both installations, the line between them, and their clock."""

    def __init__(self, here: Queue, there: Queue, remote: RemoteFrontend, line: Line) -> None:
        self.here, self.there, self.remote, self.line = here, there, remote, line
        self.now = timezone.now()

    def pass_time(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now

    def exchange(self) -> bool:
        return exchange(self.remote, self.pass_time(1))

    def run(self, rounds: int = 2) -> None:
        """Rounds of all loops of both."""
        for _ in range(rounds):
            direct(self.pass_time(1))
            self.exchange()
            direct(self.pass_time(1))
            poll(self.pass_time(6))
            self.exchange()
            poll(self.pass_time(6))

    def states(self, queue: Queue) -> Counter[str]:
        return Counter(Pilot.objects.filter(queue=queue).values_list("state", flat=True))


class TwoCalled(Two):
    """Both installations, where the frontend calls the factory."""

    line: LineToFactory  # type: ignore[assignment]

    def exchange(self) -> bool:
        """One turn of the frontend, whatever pause it makes, and what is due at the factory."""
        now = self.pass_time(1)
        RemoteFactory.objects.update(next_at=None)
        is_heard = calling.call_factory(RemoteFactory.objects.get(name="north").pk, now)
        exchange(self.remote, now)
        return is_heard


def begin(element: FakeElement, state: BatchState = BatchState.RUNNING, code: int = 0) -> None:
    """Run, or end, all pilots of the factory's batch system."""
    element.states |= {
        each: PilotState(state, exit_code=code)
        for each, was in element.states.items()
        if was.state not in (BatchState.CANCELLED, BatchState.DONE)
    }


def secrets_of(element: FakeElement) -> list[tuple[UUID, str]]:
    """Ids and secrets that the pilots of the batch system were given."""
    words = [word for batch in element.secrets.values() for word in batch]
    return [(UUID(word.partition(":")[0]), word.partition(":")[2]) for word in words]
