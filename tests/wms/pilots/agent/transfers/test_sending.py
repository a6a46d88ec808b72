"""Sends by the pilot to a real HTTP server: repeated, refused, to checked addresses alone."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.wms.pilots.agent.transfers.test_fetching import X, fetcher
from tests.wms.placement.servers.http import http_server
from wms.pilots.agent.transfers.fetching import TRIES
from wms.pilots.agent.transfers.rules import Source, TransferBroken, TransferRefused
from wms.pilots.agent.transfers.sending import Sender


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x"
    path.write_bytes(X)
    return path


def sender(**more: object) -> Sender:
    return Sender(
        fetcher(**more).rules, lambda: None, lambda pause_s: None, lambda count: None
    )  # fmt: skip


def test_a_file_goes_whole_with_its_credential(file: Path) -> None:
    with http_server() as site:
        sender().send(file, Source(site.url("/d/y?v=1"), "Bearer open-sesame"))

        assert site.files == {"/d/y?v=1": X}
        assert site.credentials == ["Bearer open-sesame"]


def test_what_is_refused_is_tried_once(file: Path) -> None:
    with http_server() as site:
        site.password = "a:b"
        with pytest.raises(TransferRefused):
            sender().send(file, Source(site.url("/y")))
        assert len(site.requests) == 1

        site.password, site.redirects["/y"] = "", site.url("/z")
        with pytest.raises(TransferRefused):
            sender().send(file, Source(site.url("/y")))
        assert not site.files


def test_a_file_that_is_too_large_and_a_wrong_address_are_refused(file: Path) -> None:
    with http_server() as site:
        with pytest.raises(TransferRefused):
            sender(file_bytes=len(X) - 1).send(file, Source(site.url("/y")))
        with pytest.raises(TransferRefused):
            sender(allowed=()).send(file, Source(site.url("/y")))

        assert not site.requests


def test_a_server_that_ends_connections_is_tried_a_few_times(file: Path) -> None:
    count = 0
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            nonlocal count
            while count < TRIES:
                connection, _ = server.accept()
                connection.close()
                count += 1

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/y"
        with pytest.raises(TransferBroken):
            sender().send(file, Source(url))
        thread.join(30)

    assert count == TRIES
