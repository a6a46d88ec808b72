"""Sends by the pilot to a WebDAV server that lacks the folders of the files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.wms.pilots.agent.transfers.test_fetching import X
from tests.wms.pilots.agent.transfers.test_sending import sender
from tests.wms.placement.servers.dav import dav_server
from wms.pilots.agent.transfers.rules import Source, TransferRefused

# The server asks the system by a program what it is.
pytestmark = pytest.mark.process


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x"
    path.write_bytes(X)
    return path


def test_the_folders_that_a_server_of_webdav_lacks_are_made(file: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "out").mkdir(parents=True)
    (store / "file").write_text("no folder")

    with dav_server(store) as port:
        site = f"http://127.0.0.1:{port}"
        for name in ("out/1/a b/y", "out/1/z", "/new//y", "y"):
            sender().send(file, Source(f"{site}/{name.replace(' ', '%20')}"))
            assert (store / name.lstrip("/")).read_bytes() == X
        for name in ("out/2/../3/y", "signed/y?v=1", "file/1/y"):
            with pytest.raises(TransferRefused):
                sender().send(file, Source(f"{site}/{name}"))

    assert sorted(each.name for each in store.iterdir()) == ["file", "new", "out", "y"]
    assert [each.name for each in (store / "out").iterdir()] == ["1"]


def test_a_server_that_makes_folders_later_is_tried_again(file: Path, tmp_path: Path) -> None:
    with dav_server(tmp_path, mkcol=["423 Locked", "503 Busy"]) as port:
        sender().send(file, Source(f"http://127.0.0.1:{port}/new/y"))

    assert (tmp_path / "new" / "y").read_bytes() == X


def test_jobs_that_make_the_same_folders_at_once_all_send_their_files(
    file: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()

    with dav_server(store) as port, ThreadPoolExecutor(4) as pool:
        urls = [f"http://127.0.0.1:{port}/a/b/{number}" for number in range(8)]
        list(pool.map(lambda url: sender().send(file, Source(url)), urls))

    assert len(list((store / "a" / "b").iterdir())) == 8
