"""A disk that is full: told, nothing half stays, and what has room is placed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.wms.placement.conftest import last_attempt
from tests.wms.placement.servers.http import http_server
from tests.wms.placement.servers.small_disk import DISK_BYTES, small_disk

pytestmark = pytest.mark.django_db

X = random.Random(4).randbytes(2 * DISK_BYTES)


@pytest.fixture
def disk(pool: Path):
    with small_disk(pool):
        yield pool


def test_a_file_that_has_no_room_leaves_nothing_and_a_smaller_one_is_placed(
    transfer, disk: Path
) -> None:
    with http_server() as site:
        site.files |= {"/large": X, "/small": X[:1000]}
        full = last_attempt(transfer(site.url("/large"), f"file://{disk}/large"))
        there = list(disk.iterdir())
        fits = last_attempt(transfer(site.url("/small"), f"file://{disk}/small"))

    assert full.exit_code == 1
    assert "No space left on device" in full.message or "File too large" in full.message
    assert there == []
    assert (fits.exit_code, (disk / "small").read_bytes()) == (0, X[:1000])
