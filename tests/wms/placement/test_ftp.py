"""Transfers by FTP, with a real server."""

from __future__ import annotations

import random

import pytest

from tests.wms.placement.conftest import last_attempt, placed
from tests.wms.placement.servers.ftp import ftp_server

pytestmark = pytest.mark.django_db

X = random.Random(9).randbytes(300_000)


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "ftp"
    folder.mkdir()
    with ftp_server(folder) as running:
        yield running


def test_a_file_goes_out_by_ftp_and_comes_back(transfer, pool, site):
    went = transfer("file:x", site.url("/a/b/y"), x=X)
    came = transfer(site.url("/a/b/y"), "file:in/", f"size = {len(X)}")

    assert (went.state, came.state) == ("completed", "completed"), went.state_reason
    assert placed(came, "in/y") == X
    assert [each.name for each in (site.folder / "a" / "b").iterdir()] == ["y"]


def test_a_missing_file_and_a_removed_one_are_told_apart(transfer, submitted, pool, site):
    missing = transfer(site.url("/x"), "file:x")
    gone = submitted(f'[dap_type = "remove"; src_url = "{site.url("/x")}"]')

    assert last_attempt(missing).exit_code == 1
    assert "550" in missing.state_reason
    assert gone.state == "completed"
