"""Settings of a feeder, requests that fill the queue, and its program behind the fence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.factories import SYSTEM
from tests.wms.placement.programs.conftest import fenced as fenced
from wms.core.models import User
from wms.placement import services as by_people
from wms.placement.conf import FeederConf, feeder_conf
from wms.placement.models import PlacementRequest

LEVEL = 3
PAUSE_S = 100


@pytest.fixture
def set_feeder(configure: Callable[..., None]) -> Callable[..., FeederConf]:
    """Set a feeder for a queue of three; its settings."""

    def make(program: Path, **more: object) -> FeederConf:
        values = {"FEED_BELOW": LEVEL, "FEED_PROGRAM": str(program), "FEED_PAUSE_S": PAUSE_S}
        configure(**values, **more)
        conf = feeder_conf()
        assert conf is not None
        return conf

    return make


@pytest.fixture
def feeder_program(
    fenced: Path, set_feeder: Callable[..., FeederConf]
) -> Callable[..., FeederConf]:
    """Have a shell program be the feeder; its settings."""
    folder = fenced / "site"
    folder.mkdir()
    folder.chmod(0o755)

    def make(text: str, **more: object) -> FeederConf:
        path = folder / "feed"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return set_feeder(path, **more)

    return make


@pytest.fixture
def fill(alice: User, pool: Path) -> Callable[[int], list[int]]:
    """Submit so many requests; their ids."""

    def make(count: int) -> list[int]:
        ad = f'[dap_type = "transfer"; src_url = "file://{pool}/x"; dest_url = "file://{pool}/y"]'
        return by_people.submit_requests(ad * count, actor=SYSTEM, owner=alice).ids

    return make


def drain() -> None:
    """End everything that waits."""
    PlacementRequest.objects.update(state="removed", state_reason="by the test")
