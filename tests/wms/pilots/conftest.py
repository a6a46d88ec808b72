"""Fixtures of tests of pilots: fake elements, queues that use them, waiting jobs, frontends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from tests.wms.pilots.fake_element import FakeElement
from wms.accounting.frontends import save_frontend
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.models import User
from wms.elements.registry import ELEMENTS
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site


@pytest.fixture(autouse=True)
def _may_ask_again_at_once(settings: Any) -> None:
    """Most tests let a pilot ask in vain and again at the same moment."""
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 0.0}


@pytest.fixture
def elements(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeElement]:
    """Fake elements by the `system` named in a queue's settings, under the kind `fake`."""
    made: dict[str, FakeElement] = {}

    def build(settings: object) -> FakeElement:
        assert isinstance(settings, dict)
        return made.setdefault(str(settings.get("system", "")), FakeElement())

    monkeypatch.setitem(ELEMENTS, "fake", build)
    return made


@pytest.fixture
def make_queue(olga: User, elements: dict[str, FakeElement]) -> Callable[..., Queue]:
    def make(site: str = "site-a", **fields: object) -> Queue:
        spec = QueueSpec(
            name="main",
            element="fake",
            settings={"system": site},
            **({"max_pilots": 10, "max_queued_pilots": 10, "attenuation": 1.0} | fields),  # type: ignore[arg-type]
        )
        made = configure_site(SiteSpec(name=site), [spec], actor=Actor.person(olga))
        return Queue.objects.select_related("site").get(site=made)

    return make


@pytest.fixture
def add_jobs(alice: User) -> Callable[..., list[int]]:
    def add(count: int = 1, **needs: object) -> list[int]:
        spec = JobSpec(
            name="run",
            executable="/bin/true",
            needs=Needs.of("alice", **needs),  # type: ignore[arg-type]
        )
        return submit_jobs(
            [spec] * count,
            owner=alice,
            workspace=create_workspace(alice, {}),
            actor=Actor.person(alice),
        )

    return add


@pytest.fixture
def collaboration(olga: User, alice: User) -> Callable[..., Frontend]:
    """A frontend with one group of the same name, in which alice is, and entries at queues."""

    def make(name: str, *queues: Queue, **entry: object) -> Frontend:
        made = Frontend(name=name)
        save_frontend(made, actor=Actor.person(olga))
        AccountingGroup.objects.create(name=name, frontend=made).members.add(alice)
        for queue in queues:
            row = FrontendEntry(frontend=made, queue=queue, **entry)  # type: ignore[misc]
            save_entry(row, actor=Actor.person(olga))
        return made

    return make
