"""A service that is killed in the middle of a transfer is followed by one that goes on."""

from __future__ import annotations

import multiprocessing
import random
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.batch_systems.services import wait_until
from tests.wms.placement.servers.http import http_server
from wms.core.actors import Actor
from wms.placement import operations, runner
from wms.placement import services as by_people
from wms.placement.conf import placement_conf
from wms.placement.models import PlacementRequest
from wms.placement.modules import carry_out
from wms.placement.modules.protocol import TransferTask
from wms.placement.request_ad import Checksums
from wms.placement.states import RequestKind

pytestmark = [pytest.mark.django_db, pytest.mark.process]

X = random.Random(3).randbytes(4_000_000)


def _bytes_there(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


def _killed_in_the_middle(task: TransferTask, folder: Path) -> None:
    """Begin the transfer in a process of its own, and kill that when something has come."""
    # Forked: it needs no database.
    service = multiprocessing.get_context("fork").Process(
        target=carry_out, args=(RequestKind.TRANSFER, ("http", "file"), task)
    )
    service.start()
    wait_until(lambda: _bytes_there(folder) > 0, 30)
    service.kill()
    service.join()


def test_what_came_before_the_kill_does_not_come_again(alice, pool) -> None:
    with http_server() as site:
        site.files["/x"], site.stalls = X, True
        text = (
            f'[dap_type = "transfer"; src_url = "{site.url("/x")}"; dest_url = "file://{pool}/y"]'
        )
        [pk] = by_people.submit_requests(text, actor=Actor.person(alice), owner=alice).ids
        now = timezone.now()
        started = operations.take_request(now)
        assert started is not None
        task = TransferTask(
            request_id=pk, source_url=site.url("/x"), destination_url=f"file://{pool}/y",
            arguments="", workspace_id=0, directory="", checksums=Checksums(), expected_bytes=None,
            conf=placement_conf(), pulse=lambda: None,
        )  # fmt: skip

        _killed_in_the_middle(task, pool)
        came = _bytes_there(pool)
        site.stalls = False
        lost = operations.end_lost_attempts(now + operations.LEASE + timedelta(seconds=1))
        PlacementRequest.objects.update(due_at=timezone.now())
        runner.run_due()

    request = PlacementRequest.objects.get()
    assert (lost, request.state, request.attempt_number) == ([pk], "completed", 2)
    assert 0 < came < len(X)
    # The first of the second attempt's answers is not read: it asks for the rest.
    assert f"bytes={came}-" in [each[2] for each in site.requests]
    assert [each.name for each in pool.iterdir()] == ["y"]
    assert (pool / "y").read_bytes() == X
