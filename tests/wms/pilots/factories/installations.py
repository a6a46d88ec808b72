"""Two installations in one database: one has the jobs, one is the factory; and the line between.

`south` is the frontend's name at the factory, `north` the factory's at the frontend.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from django.test import Client

from wms.accounting.frontends import save_frontend
from wms.accounting.models import Frontend
from wms.core.actors import Actor
from wms.core.models import User
from wms.factories.messages import Orders, Report, as_json, orders_of
from wms.factories.models import RemoteFactory
from wms.factories.services import create_factory
from wms.pilots.factories import turns
from wms.pilots.factories.calls import CallFailed
from wms.pilots.factories.services import save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site

EXCHANGE = "/factory/v1/exchange"


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


def post(credential: str, report: object) -> Any:
    """Answer of the frontend to a call."""
    return Client().post(
        EXCHANGE,
        json.dumps(report),
        content_type="application/json",
        headers={"Authorization": f"Bearer {credential}"},
    )


def install(
    make_queue: Callable[..., Queue], olga: User, tokens: Path, **entry: object
) -> tuple[Queue, Queue, RemoteFrontend]:
    """The frontend's queue, the factory's, and the frontend as the factory knows it."""
    actor = Actor.person(olga)
    factory = RemoteFactory(name="north")
    token = create_factory(factory, actor=actor)
    tokens.mkdir(exist_ok=True)
    (tokens / "south").write_text(token)
    there = make_queue("site-x")
    south = Frontend(name="south")
    save_frontend(south, actor=actor)
    save_entry(FrontendEntry(frontend=south, queue=there, **entry), actor=actor)  # type: ignore[misc]
    save_entry(FrontendEntry(frontend=None, queue=there, share=0), actor=actor)
    remote = RemoteFrontend(frontend=south, url="https://south.example.org", factory_name="north")
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
