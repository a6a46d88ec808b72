"""Fixtures of pilot API tests: a queue, clients of a fresh and a registered pilot, a claim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from matching.task_queues.needs import Needs
from tests.portal.pilot_api.pilot_client import SECRET, PilotClient
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs import operations
from wms.jobs.content import blobs
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import secret_digest
from wms.sites.models import Queue, Site


@pytest.fixture(autouse=True)
def _blobs(settings: Any, tmp_path: Path) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "BLOBS_DIR": str(tmp_path)}


@pytest.fixture(autouse=True)
def _may_ask_again_at_once(settings: Any) -> None:
    """Most tests let a pilot ask in vain and again at the same moment."""
    settings.PILOTAGE = {**settings.PILOTAGE, "AGENT_POLL_S": 0.0}


@pytest.fixture
def queue() -> Queue:
    return Queue.objects.create(site=Site.objects.create(name="UW"), name="short", element="host")


@pytest.fixture
def fresh(queue: Queue) -> PilotClient:
    return PilotClient(
        Pilot.objects.create(queue=queue, batch="batch", secret_sha256=secret_digest(SECRET))
    )


@pytest.fixture
def registered(fresh: PilotClient) -> PilotClient:
    assert fresh.register().status_code == 200
    return fresh


@pytest.fixture
def make_job() -> Callable[..., int]:
    """Submit one job of Alice's with these needs; returns its id."""
    alice = User.objects.create_user("alice")
    stored = {"run.sh": blobs.store_bytes(b"#!/bin/sh\n"), "in.txt": blobs.store_bytes(b"in")}

    def make(**needs: Any) -> int:
        spec = operations.JobSpec(
            name="analysis",
            executable="run.sh",
            needs=Needs.of("alice", **needs),
            arguments=("1",),
            environment={"A": "b"},
            input_files=("in.txt",),
            output_files=("out.txt",),
            wall_limit_s=60,
        )
        workspace = operations.create_workspace(alice, stored)
        actor = Actor.person(alice)
        [pk] = operations.submit_jobs([spec], owner=alice, workspace=workspace, actor=actor)
        return pk

    return make


@pytest.fixture
def job_id(make_job: Callable[..., int]) -> int:
    return make_job()


@pytest.fixture
def attempt(registered: PilotClient, job_id: int) -> str:
    """The path of a claimed attempt."""
    job = registered.claim()
    return f"jobs/{job['job']}/{job['attempt']}"
