from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from tests.factories import SYSTEM
from wms.core.actors import Actor
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import WorkspaceFile
from wms.jobs.operations import create_workspace
from wms.placement import runner
from wms.placement import services as by_people
from wms.placement.models import PlacementAttempt, PlacementRequest
from wms.placement.submission import submit_requests


@pytest.fixture
def configure(settings) -> Callable[..., None]:
    """Change settings of placements."""

    def change(**values: object) -> None:
        placement = settings.PILOTAGE["PLACEMENT"] | values
        settings.PILOTAGE = settings.PILOTAGE | {"PLACEMENT": placement}

    return change


@pytest.fixture
def pool(tmp_path: Path, configure) -> Path:
    """A folder that is listed for placements, with this host's addresses allowed."""
    folder = tmp_path / "pool"
    folder.mkdir()
    configure(ROOTS=[str(folder)], ALLOWED=["127.0.0.0/8"])
    return folder


@pytest.fixture
def transfer(alice) -> Callable[..., PlacementRequest]:
    """Submit a transfer of a DAG and carry out one attempt, or so many; its request."""

    def make(
        source: str, destination: str, more: str = "", *, attempts: int = 1, **files: bytes
    ) -> PlacementRequest:
        blobs = {name: store_bytes(data) for name, data in files.items()}
        ad = f'dap_type = "transfer"\nsrc_url = "{source}"\ndest_url = "{destination}"\n{more}'
        [pk] = submit_requests(
            ad, workspace=create_workspace(alice, blobs), directory="", owner=alice,
            topic="dag-data", topic_key=7, actor=SYSTEM,
        )  # fmt: skip
        for _ in range(attempts):
            PlacementRequest.objects.filter(pk=pk).update(due_at=timezone.now())
            runner.run_due()
        return PlacementRequest.objects.get(pk=pk)

    return make


def last_attempt(request: PlacementRequest) -> PlacementAttempt:
    """The latest attempt of a request."""
    return request.attempts.order_by("-number")[0]


def placed(request: PlacementRequest, name: str) -> bytes:
    """A file of the request's workspace."""
    row = WorkspaceFile.objects.get(workspace=request.workspace_id, path=name)
    with open_blob(row.blob_id) as file:
        return file.read()


@pytest.fixture
def again() -> Callable[[PlacementRequest], PlacementRequest]:
    """Carry out the next attempt of a request now."""

    def make(request: PlacementRequest) -> PlacementRequest:
        PlacementRequest.objects.filter(pk=request.pk).update(due_at=None)
        runner.run_due()
        return PlacementRequest.objects.get(pk=request.pk)

    return make


@pytest.fixture
def submitted(alice) -> Callable[[str], PlacementRequest]:
    """Submit a request of its own and carry out one attempt."""

    def make(text: str) -> PlacementRequest:
        done = by_people.submit_requests(text, actor=Actor.person(alice), owner=alice)
        runner.run_due()
        return PlacementRequest.objects.get(pk=done.ids[0])

    return make
