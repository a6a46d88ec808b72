"""Transfers by WebDAV, with a real server."""

from __future__ import annotations

import random

import pytest

from tests.wms.placement.conftest import placed
from tests.wms.placement.servers.dav import dav_server

# The server asks the system for its name by a program.
pytestmark = [pytest.mark.django_db, pytest.mark.process]

X = random.Random(11).randbytes(300_000)


def test_a_file_goes_to_folders_that_are_made_and_comes_back(transfer, pool, tmp_path):
    folder = tmp_path / "dav"
    folder.mkdir()
    with dav_server(folder) as port:
        went = transfer("file:x", f"dav://127.0.0.1:{port}/a/b/y", x=X)
        came = transfer(f"dav://127.0.0.1:{port}/a/b/y", "file:z")

    assert (went.state, came.state) == ("completed", "completed"), went.state_reason
    assert placed(came, "z") == (folder / "a" / "b" / "y").read_bytes() == X
    assert [each.name for each in (folder / "a" / "b").iterdir()] == ["y"]
