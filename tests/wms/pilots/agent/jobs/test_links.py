"""Large files of jobs go by links to the store, and through the portal where links fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.s3.server import S3Server
from tests.wms.pilots.agent.conftest import World
from tests.wms.pilots.agent.faulty_proxy import PASS, FaultyProxy

pytestmark = pytest.mark.django_db(transaction=True)

LARGE = random.Random(5).randbytes(400_000)
SCRIPT = "#!/bin/sh\ncat in.bin in.bin >out.bin\necho done\n"


@pytest.fixture
def store(world: World, bucket: str, s3: S3Server, settings: Any) -> Iterator[FaultyProxy]:
    """The store as the node sees it."""
    proxy = FaultyProxy(s3.url)
    changed = settings.PILOTAGE["BLOBS_S3"] | {"LINKS_URL": proxy.url}
    settings.PILOTAGE = settings.PILOTAGE | {"BLOBS_S3": changed}
    yield proxy
    proxy.stop()


def run(world: World) -> str:
    job = world.submit(SCRIPT, inputs={"in.bin": LARGE}, outputs=("out.bin",))
    agent = world.start()
    agent.wait()
    assert world.wait_for_state(job, "done")
    assert world.output(job, "out.bin") == LARGE * 2
    assert world.log_of(job) == "done\n"
    return agent.log


def test_files_pass_by_the_portal_and_another_link_is_asked_for_when_one_has_run_out(
    world: World, store: FaultyProxy
) -> None:
    refused: set[str] = set()

    def run_out(method: str, path: str) -> str | int:
        if method in refused:
            return PASS
        refused.add(method)
        return 403

    store.fault = run_out

    log = run(world)

    assert [method for method, _ in store.seen] == ["GET", "GET", "PUT", "PUT"]
    assert world.server.count("GET", "/inputs/in.bin") == 2
    assert world.server.count("POST", "/links/output/out.bin") == 3
    assert world.server.count("PUT", "/files/output/out.bin") == 0
    assert world.server.count("PUT", "/files/stdout/stdout") == 1
    assert "answered 403" in log
    assert "X-Amz" not in log


def test_where_links_do_not_work_files_go_through_the_portal(
    world: World, store: FaultyProxy
) -> None:
    store.stop()

    log = run(world)

    assert world.server.count("GET", "/inputs/in.bin") == 4
    assert world.server.count("PUT", "/files/output/out.bin") == 1
    assert "X-Amz" not in log
    store.start()
